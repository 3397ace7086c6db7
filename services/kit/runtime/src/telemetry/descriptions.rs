//! Descriptions of the metrics that every program may have, for `# HELP` on `/metrics`.

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};

/// Describes the metrics of this crate. A crate with metrics of its own describes them with the
/// same macros when it starts, after [`super::Telemetry::install`] and before their first value.
/// The description states the unit, because the text format of Prometheus has no other place for
/// it.
pub(super) fn describe() {
    describe_histogram!(
        "rpc_server_call_duration_seconds",
        Unit::Seconds,
        "Time in seconds from the start of a received gRPC call until its response begins."
    );
    describe_histogram!(
        "rpc_client_call_duration_seconds",
        Unit::Seconds,
        "Time in seconds from the start of a gRPC call, including retries, until its response begins."
    );
    describe_counter!(
        "rpc_client_retries_total",
        Unit::Count,
        "Retries of gRPC calls that only read: sent, or suppressed by the retry budget."
    );
    describe_counter!(
        "rpc_client_refused_total",
        Unit::Count,
        "gRPC calls that failed at once because no replica of the service was serving."
    );
    describe_gauge!(
        "rpc_client_replicas",
        Unit::Count,
        "Replicas of a service that are connected and serving."
    );
    describe_gauge!(
        "assay_database_connections",
        Unit::Count,
        "Open connections of a program to its database, used or idle."
    );
    describe_counter!(
        "assay_connections_refused_total",
        Unit::Count,
        "Connections closed because a limit was reached: of all, or of one address."
    );
}
