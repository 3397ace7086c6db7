//! What a reviewer may make of a test report.

use assay_auth::Caller;
use assay_proto::{
    Fault, Permission, ReportStatus,
    execution::{TestReport, TestReportInput},
};
use assay_records::Check;

/// Checks that a caller may review a report so. One that engines failed to execute is reviewed like
/// any other: somebody has to look at it; of one that was canceled there is nothing to review.
pub(super) fn reviewed(
    caller: &Caller,
    report: &TestReport,
    review: TestReportInput,
) -> Result<TestReportInput, Fault> {
    let mut check = Check::default();
    check.texts(&review);
    // Whoever changes the comment alone may send back the status as it was.
    if !is_review(review.status()) && review.status != report.status {
        check.refuse("Status", "must be Accepted, Rejected, Investigation or InReview");
    }
    check.done()?;
    let (code, reason) = match report.status() {
        ReportStatus::NotExecuted | ReportStatus::Running => {
            ("report_not_finished", "the report is not finished yet")
        }
        ReportStatus::Canceled => ("report_canceled", "the report was canceled"),
        _ => return permitted(caller, review),
    };
    Err(Fault::Conflict { code, reason: reason.to_owned() })
}

fn is_review(status: ReportStatus) -> bool {
    matches!(
        status,
        ReportStatus::Accepted
            | ReportStatus::Rejected
            | ReportStatus::Investigation
            | ReportStatus::InReview
    )
}

/// What a report says after a review needs the permission to say so.
fn permitted(caller: &Caller, review: TestReportInput) -> Result<TestReportInput, Fault> {
    let needed = match review.status() {
        ReportStatus::Accepted => Permission::Accept,
        ReportStatus::Rejected => Permission::Reject,
        _ => return Ok(review),
    };
    if caller.may(needed) {
        return Ok(review);
    }
    Err(Fault::Forbidden(format!("this needs the permission {}", assay_proto::name_of(needed))))
}
