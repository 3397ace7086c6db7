//! Rules for reviews of test reports.

use assay_auth::Caller;
use assay_proto::{
    Fault, Permission, ReportStatus,
    execution::{TestReport, TestReportInput},
};
use assay_records::Check;

/// Returns the review if the caller may make it, without an empty comment. A report with an engine
/// failure is reviewed like any other, a canceled one is not.
pub(super) fn check_review(
    caller: &Caller,
    report: &TestReport,
    review: TestReportInput,
) -> Result<TestReportInput, Fault> {
    let mut check = Check::default();
    check.texts(&review);
    // A client that changes only the comment may send the status back unchanged.
    if !is_review(review.status()) && review.status != report.status {
        check.refuse("Status", "must be Accepted, Rejected, Investigation or InReview");
    }
    check.done()?;
    let (code, reason) = match report.status() {
        ReportStatus::NotExecuted | ReportStatus::Running => {
            ("report_not_finished", "the report is not finished yet")
        }
        ReportStatus::Canceled => ("report_canceled", "the report was canceled"),
        _ => {
            require_permission(caller, review.status())?;
            let comment = review.comment.filter(|comment| !comment.is_empty());
            return Ok(TestReportInput { comment, ..review });
        }
    };
    Err(Fault::Conflict { code, reason: reason.to_owned() })
}

pub(super) fn is_review(status: ReportStatus) -> bool {
    matches!(
        status,
        ReportStatus::Accepted
            | ReportStatus::Rejected
            | ReportStatus::Investigation
            | ReportStatus::InReview
    )
}

/// Fails unless the caller has the permission that a status needs.
pub(super) fn require_permission(caller: &Caller, status: ReportStatus) -> Result<(), Fault> {
    let needed = match status {
        ReportStatus::Accepted => Permission::Accept,
        ReportStatus::Rejected => Permission::Reject,
        _ => return Ok(()),
    };
    if caller.may(needed) {
        return Ok(());
    }
    Err(Fault::Forbidden(format!("this needs the permission {}", assay_proto::name_of(needed))))
}
