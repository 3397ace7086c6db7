//! The outcome of an execution.

use assay_ledger::verdict::store::changes_of;
use assay_proto::{
    CustomerId, ExecutionId, ExecutionStatistic, Fault, ProjectId,
    execution::{ChangeCounts, ExecutionEntry, ExecutionSummary},
};
use sqlx::{AssertSqlSafe, FromRow, PgExecutor};
use uuid::Uuid;

use crate::console_link::ConsoleLinks;

#[derive(FromRow)]
struct Row {
    #[sqlx(flatten)]
    entry: ExecutionEntry,
    #[sqlx(flatten)]
    statistic: ExecutionStatistic,
    #[sqlx(flatten)]
    changes: ChangeCounts,
    project_id: Uuid,
    baseline: Vec<Uuid>,
    incident_id: Option<Uuid>,
    revision: i64,
    notes: Vec<String>,
}

/// Returns the outcome of an execution of any project, or of this one.
pub(crate) async fn of(
    db: impl PgExecutor<'_>,
    console: &ConsoleLinks,
    customer: CustomerId,
    project: Option<ProjectId>,
    id: ExecutionId,
) -> Result<ExecutionSummary, Fault> {
    let (columns, statistic) = (ExecutionEntry::COLUMNS, ExecutionStatistic::COLUMNS);
    let changes = changes_of("$2");
    let row: Option<Row> = sqlx::query_as(AssertSqlSafe(format!(
        "select {columns}, {statistic}, project_id, baseline, revision, notes, changes.*,
                (
                    select incident_id from incident_execution
                    where customer_id = $1 and execution_id = $2
                    order by incident_id desc
                    limit 1
                ) as incident_id
         from live_execution
         cross join lateral ({changes}) as changes
         where customer_id = $1 and id = $2 and ($3::uuid is null or project_id = $3)"
    )))
    .bind(customer)
    .bind(id)
    .bind(project)
    .fetch_optional(db)
    .await?;
    let row = row.ok_or(Fault::NotFound("execution"))?;
    let Row { entry, statistic, changes, project_id, baseline, incident_id, revision, notes } = row;
    Ok(ExecutionSummary {
        execution: Some(ExecutionEntry { statistic: Some(statistic), ..entry }),
        project_id: project_id.to_string(),
        changes: Some(changes),
        compared_with: baseline.first().map(Uuid::to_string),
        incident_id: incident_id.map(|id| id.to_string()),
        url: console.execution(&id.to_string()),
        data_version: revision.to_string(),
        notes,
    })
}
