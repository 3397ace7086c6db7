//! Reviews: what people make of a finished test report.

mod store;

use assay_auth::Caller;
use assay_events::{Event, publish};
use assay_proto::{
    Fault,
    events::{ReportState, ReportsChanged},
    execution::{TestReport, TestReportInput},
};
use assay_records::Change;
use sqlx::PgTransaction;

use self::store::Told;
use super::{Place, rules};

/// Reviews a report, and tells others of it.
pub(super) async fn review(
    tx: &mut PgTransaction<'_>,
    caller: &Caller,
    place: Place,
    change: Change<TestReportInput>,
) -> Result<TestReport, Fault> {
    let current = store::lock(tx, caller.customer, place).await?.report;
    let review = change.of("test report", &current, &current.data_version)?;
    let review = rules::reviewed(caller, &current, review)?;
    store::review(tx, caller.customer, place.id, &review).await?;
    let store::Locked { report, told } = store::lock(tx, caller.customer, place).await?;
    let reviewed = reviewed(&report, &told);
    let event =
        Event::new(caller.customer, told.execution_id, "test_report", "reviewed", &reviewed)?;
    publish(tx, &event).await?;
    Ok(report)
}

fn reviewed(report: &TestReport, told: &Told) -> ReportsChanged {
    let state = ReportState {
        id: report.id.clone(),
        test_case_id: report.test_case_id.clone(),
        test_plan_id: report.test_plan_id.clone(),
        execution_number: report.execution_number,
        result: report.result,
        status: report.status,
        start_date_time: report.start_date_time,
        finish_date_time: report.finish_date_time,
        average_duration_in_sec: report.average_duration_in_sec,
        revision: told.revision,
    };
    ReportsChanged {
        execution_id: told.execution_id.to_string(),
        project_id: told.project_id.to_string(),
        test_set_id: told.test_set_id.to_string(),
        action: "Reviewed".to_owned(),
        software_name: report.subject_name.clone(),
        software_identifier: report.subject_identifier.clone(),
        reports: vec![state],
    }
}
