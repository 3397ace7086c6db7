//! Deleted test cases and test sets in PostgreSQL. The catalog has no history of them, so insights, grids
//! and metrics leave them out.

use std::time::Instant;

use assay_events::{EventType, Received, RecordKind};
use assay_fair::Throttle;
use assay_proto::{CustomerId, Fault, ProjectId, events::RecordChanged};
use assay_records::Action;
use sqlx::{PgPool, PgTransaction};
use uuid::Uuid;

use super::store::ALL_PROJECTS;
use crate::monitor::lock_all;

/// Returns the condition that a test case or a test set was not deleted. `$1` is its customer; the
/// arguments are the SQL of its project and of its id.
pub fn is_not_deleted(project: &str, id: &str) -> String {
    format!(
        "not exists (
             select from deleted_record gone
             where gone.customer_id = $1 and gone.project_id = {project} and gone.id = {id}
         )"
    )
}

/// Returns the project and the id of the test case or test set whose deletion an event reports.
pub fn deleted(event: &Received) -> Result<Option<(ProjectId, Uuid)>, Fault> {
    let Some(EventType::Record(RecordKind::TestCase | RecordKind::TestSet, Action::Deleted)) =
        event.event_type()
    else {
        return Ok(None);
    };
    let changed: RecordChanged = event.data()?;
    let id = changed.source_id.parse().map_err(Fault::internal)?;
    let project = ProjectId::from_field("TargetId", &changed.target_id.unwrap_or_default())?;
    Ok(Some((project, id)))
}

/// Inserts deleted records, except those of deleted projects, which nobody can see. Deletes the states and
/// the alarms of deleted test cases.
pub async fn insert(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    records: &[(ProjectId, Uuid)],
) -> Result<(), Fault> {
    let (projects, ids): (Vec<ProjectId>, Vec<Uuid>) = records.iter().copied().unzip();
    lock_all(tx, customer, &projects).await?;
    let lock = sqlx::query(
        "select from test_case_state
         where customer_id = $1
           and (project_id, test_case_id) in (select * from unnest($2::uuid[], $3::uuid[]))
         order by project_id, test_case_id
         for update",
    );
    lock.bind(customer).bind(&projects).bind(&ids).execute(&mut **tx).await?;
    let insert = sqlx::query(
        "with gone as (
             select project_id, id from unnest($2::uuid[], $3::uuid[]) as gone (project_id, id)
         ), states as (
             delete from test_case_state
             where customer_id = $1 and (project_id, test_case_id) in (select * from gone)
         ), alarms as (
             delete from monitor_alarm a
             using monitor m, gone
             where a.customer_id = $1 and a.monitor_id = m.id and a.test_case_id = gone.id
               and m.customer_id = $1 and m.project_id = gone.project_id
         )
         insert into deleted_record (customer_id, project_id, id)
         select $1, project_id, id from gone
         where not exists (
             select from deletion d
             where d.customer_id = $1 and d.project_id in (gone.project_id, $4)
         )
         order by project_id, id
         on conflict on constraint deleted_record_pkey do nothing",
    );
    insert.bind(customer).bind(projects).bind(ids).bind(ALL_PROJECTS).execute(&mut **tx).await?;
    Ok(())
}

/// Removes the deleted records of a deleted project, or of all projects of a customer, in short
/// statements.
pub async fn remove(
    db: &PgPool,
    throttle: &mut Throttle,
    customer: CustomerId,
    project: ProjectId,
) -> Result<(), Fault> {
    loop {
        let (begun, limit) = (Instant::now(), throttle.batch_size());
        let remove = sqlx::query(
            "delete from deleted_record where customer_id = $1 and (project_id, id) in (
                 select project_id, id from deleted_record
                 where customer_id = $1 and $2 in (project_id, $3)
                 limit $4
             )",
        );
        let remove = remove.bind(customer).bind(project).bind(ALL_PROJECTS).bind(limit);
        if remove.execute(db).await?.rows_affected() < limit.unsigned_abs() {
            return Ok(());
        }
        throttle.pause(begun.elapsed()).await;
    }
}
