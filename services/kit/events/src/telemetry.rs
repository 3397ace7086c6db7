//! Descriptions of the metrics of relays and consumers, for `# HELP` on `/metrics`.

use metrics::{Unit, describe_counter, describe_gauge};

/// Describes the metrics of this crate. Calling it again has no effect.
pub(crate) fn describe() {
    describe_gauge!(
        "assay_outbox_depth",
        Unit::Count,
        "Events in the outbox that have not been published."
    );
    describe_gauge!(
        "assay_outbox_age_seconds",
        Unit::Seconds,
        "Age in seconds of the oldest event in the outbox that has not been published, 0 if none."
    );
    describe_counter!(
        "assay_outbox_published_total",
        Unit::Count,
        "Events published to JetStream and acknowledged by it."
    );
    describe_counter!(
        "assay_events_lost_total",
        Unit::Count,
        "Events that NATS lost before all consumers of the stream had received them."
    );
    describe_counter!(
        "assay_events_replayed_total",
        Unit::Count,
        "Lost events that the relay has published again."
    );
    describe_gauge!(
        "assay_consumer_behind",
        Unit::Count,
        "Events of a stream that have not been delivered to the consumer."
    );
    describe_counter!(
        "assay_events_applied_total",
        Unit::Count,
        "Events that a consumer has applied."
    );
    describe_counter!(
        "assay_events_failed_total",
        Unit::Count,
        "Attempts to apply an event that failed."
    );
    describe_gauge!(
        "assay_events_parked",
        Unit::Count,
        "Parked events that wait to be retried, counted up to 10,000."
    );
    describe_gauge!(
        "assay_events_parked_age_seconds",
        Unit::Seconds,
        "Age in seconds of the oldest parked event, 0 if none."
    );
}
