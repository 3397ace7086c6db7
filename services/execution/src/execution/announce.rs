//! Tells other services what has become of an execution.

use assay_events::{Event, publish_all};
use assay_proto::{
    CustomerId, Fault,
    events::{ReportState, ReportsChanged},
};
use sqlx::PgTransaction;

use crate::execution::Run;

/// How many reports one event tells of: JetStream takes a mebibyte.
const REPORTS_IN_EVENT: usize = 500;

/// Announces `action` of an execution, whose row is locked, and the reports that ended by it.
pub(crate) async fn announce(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    run: &Run,
    action: &str,
    finished: &[ReportState],
) -> Result<(), Fault> {
    let record = &run.execution.id;
    let changed = run.changed(action);
    let mut events = vec![Event::new(customer, record, "execution", action, &changed)?];
    for reports in finished.chunks(REPORTS_IN_EVENT) {
        let changed = ReportsChanged {
            execution_id: record.clone(),
            project_id: changed.project_id.clone(),
            test_set_id: changed.test_set_id.clone(),
            action: "Finished".to_owned(),
            software_name: run.execution.software_name.clone(),
            software_identifier: run.execution.software_version.clone(),
            reports: reports.to_vec(),
        };
        events.push(Event::new(customer, record, "test_report", "finished", &changed)?);
    }
    publish_all(tx, &events).await
}
