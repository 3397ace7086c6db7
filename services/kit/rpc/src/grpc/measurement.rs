//! Measurements of calls.

use std::{array, sync::LazyLock, time::Duration};

use assay_proto::method_at;
use tonic::Code;

/// Returns the label of the method at a path: its name, or `other` for a method that no contract
/// has, which must not create a time series.
pub(super) fn method_label(path: &str) -> &'static str {
    method_at(path).unwrap_or("other")
}

/// Records the duration of a call until its response begins.
pub(super) fn record(histogram: &'static str, method: &'static str, code: Code, took: Duration) {
    static CODES: LazyLock<[String; 17]> = LazyLock::new(|| {
        array::from_fn(|code| format!("{:?}", Code::from(i32::try_from(code).unwrap_or_default())))
    });
    let code = usize::try_from(i32::from(code)).ok().and_then(|code| CODES.get(code));
    let labels = [("method", method), ("code", code.map_or("Unknown", String::as_str))];
    metrics::histogram!(histogram, &labels).record(took.as_secs_f64());
}

#[test]
fn methods_of_contracts_are_labels() {
    assert_eq!(
        method_label("/assay.catalog.v1.TestCaseService/ListTestCases"),
        "assay.catalog.v1.TestCaseService/ListTestCases"
    );
    assert_eq!(method_label("/assay.catalog.v1.TestCaseService/Nothing"), "other");
}
