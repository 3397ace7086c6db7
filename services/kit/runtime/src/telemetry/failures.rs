//! Counts unexpected failures: all that a program logs as an error.

use metrics::{Unit, counter, describe_counter};
use tracing::{Event, Subscriber};
use tracing_subscriber::{
    Layer,
    filter::{LevelFilter, Targets},
    layer::Context,
    registry::LookupSpan,
};

const FAILURES: &str = "assay_unexpected_failures_total";

struct Failures;

/// Returns the layer that counts errors of Assay, not those in the logs of libraries.
pub(super) fn layer<S: Subscriber + for<'a> LookupSpan<'a>>() -> impl Layer<S> {
    Failures.with_filter(Targets::new().with_target("assay", LevelFilter::ERROR))
}

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
    fn on_event(&self, _: &Event<'_>, _: Context<'_, S>) {
        counter!(FAILURES).increment(1);
    }
}
