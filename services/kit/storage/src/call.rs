//! Calls of the store: each has a deadline and is measured.

use std::time::{Duration, Instant};

use assay_proto::Fault;
use object_store::Error;
use tokio::time::timeout;

/// Time limit for each call of the store but the end of a large file, and for each chunk of a file. A store may hang at
/// any point.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

/// The metric of calls.
const CALLS: &str = "assay_artifact_store_call_duration_seconds";

/// Describes the metric of calls.
pub fn describe_metrics() {
    metrics::describe_histogram!(
        CALLS,
        metrics::Unit::Seconds,
        "Time that the store of files and artifacts has taken for a call."
    );
}

/// Does a part of a call within the deadline.
pub(crate) async fn within<T>(part: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    in_time(TIMEOUT, part).await
}

async fn in_time<T>(
    time: Duration,
    part: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let late = |late| Error::Generic { store: "files", source: Box::new(late) };
    timeout(time, part).await.unwrap_or_else(|elapsed| Err(late(elapsed)))
}

/// Calls the store within the deadline, and measures the call.
pub(crate) async fn measured<T>(
    call: &'static str,
    answer: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    measured_within(call, TIMEOUT, answer).await
}

/// Calls the store within this time, and measures the call.
pub(crate) async fn measured_within<T>(
    call: &'static str,
    time: Duration,
    answer: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let begun = Instant::now();
    let answer = in_time(time, answer).await;
    let result = match &answer {
        Ok(_) | Err(Error::NotFound { .. }) => "done",
        Err(_) => "failed",
    };
    metrics::histogram!(CALLS, "call" => call, "result" => result).record(begun.elapsed());
    answer
}

pub(crate) fn available<T>(answer: Result<T, Error>) -> Result<T, Fault> {
    answer.map_err(|error| {
        tracing::warn!(%error, "the store of files failed");
        Fault::Unavailable("the store of files")
    })
}
