//! Counts unexpected failures: all that a program logs as an error.

use metrics::{Unit, counter, describe_counter};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::{Layer, layer::Context};

const FAILURES: &str = "assay_unexpected_failures_total";

/// Counts errors of Assay, not those in the logs of libraries. It has no filter of its own: every layer with a
/// filter looks up each span several times, which costs a tenth of a small request.
pub(super) struct Failures;

/// Describes the counter, and exports it from 0, so that alerts see the first increase.
pub(super) fn describe() {
    describe_counter!(
        FAILURES,
        Unit::Count,
        "Failures that no input and no outage should cause; each has an error in the log."
    );
    counter!(FAILURES).increment(0);
}

impl<S: Subscriber> Layer<S> for Failures {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        if *metadata.level() == Level::ERROR && metadata.target().starts_with("assay") {
            counter!(FAILURES).increment(1);
        }
    }
}
