//! Tests of the order of results.

use assay_proto::{TestResult, worst};

#[test]
fn the_worst_result_wins_in_any_order() {
    let from_best = [
        TestResult::NotExecuted,
        TestResult::Passed,
        TestResult::Canceled,
        TestResult::Aborted,
        TestResult::Failed,
        TestResult::Error,
    ];
    for (index, worse) in from_best.iter().enumerate() {
        for better in &from_best[..=index] {
            assert_eq!(worst(*worse, *better), *worse);
            assert_eq!(worst(*better, *worse), *worse);
        }
    }
}
