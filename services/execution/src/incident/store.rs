//! Incidents in PostgreSQL. Every statement is bound to one customer.

use assay_proto::{
    CustomerId, ExecutionId, Fault, IncidentId, ProjectId,
    execution::{Incident, IncidentEntry, IncidentExecution},
};
use assay_rpc::list::{Rows, Slice};
use sqlx::{AssertSqlSafe, PgPool, PgTransaction};

use super::evidence::{Cause, Completed, NEAR, is_of_time};

/// Maximum number of affected executions that are listed.
const LISTED: i64 = 100;

/// The kind of a new incident.
#[derive(Clone, Copy)]
pub(super) enum NewIncident<'c> {
    /// With the most frequent cause, if there is one.
    Outage(Option<&'c Cause>),
    Cause(&'c Cause),
}

/// Whether an incident affects an execution.
pub(super) async fn is_affected(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
) -> Result<bool, Fault> {
    let affected = sqlx::query_scalar(
        "select exists (
             select from incident_execution where customer_id = $1 and execution_id = $2
         )",
    );
    Ok(affected.bind(customer).bind(execution).fetch_one(&mut **tx).await?)
}

/// Returns the incident that an outage belongs to, if there is one.
pub(super) async fn of_outage(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: &Completed,
    cause: Option<&Cause>,
) -> Result<Option<IncidentId>, Fault> {
    let is_of_time = is_of_time("$4");
    let incident = sqlx::query_scalar(AssertSqlSafe(format!(
        "select id from incident i
         where customer_id = $1 and project_id = $2 and {is_of_time}
           and (fingerprint = $3
                or kind = 'Outage' and $4 <= last_seen_at + make_interval(mins => {NEAR})
                or kind = 'Outage' and exists (
                    select from incident_execution a
                    where a.customer_id = $1 and a.incident_id = i.id and a.test_set_id = $5
                ))
         order by id
         limit 1"
    )));
    let incident = incident
        .bind(customer)
        .bind(execution.project_id)
        .bind(cause.map(|cause| &cause.fingerprint))
        .bind(execution.request_time)
        .bind(execution.test_set_id);
    Ok(incident.fetch_optional(&mut **tx).await?)
}

/// Returns the incidents with the causes of an execution that it belongs to, one for each cause.
pub(super) async fn of_causes(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: &Completed,
) -> Result<Vec<IncidentId>, Fault> {
    let is_of_time = is_of_time("$4");
    let incidents = sqlx::query_scalar(AssertSqlSafe(format!(
        "select distinct on (fingerprint) id from incident i
         where customer_id = $1 and project_id = $2 and {is_of_time} and exists (
             select from failure f
             join test_report r on r.customer_id = f.customer_id and r.id = f.test_report_id
             where f.customer_id = $1 and f.execution_id = $3 and f.fingerprint = i.fingerprint
               and not r.is_muted
         )
         order by fingerprint, id"
    )));
    let incidents = incidents
        .bind(customer)
        .bind(execution.project_id)
        .bind(execution.id)
        .bind(execution.request_time);
    Ok(incidents.fetch_all(&mut **tx).await?)
}

/// Inserts an incident that begins with an execution.
pub(super) async fn insert(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: &Completed,
    new: NewIncident<'_>,
) -> Result<IncidentId, Fault> {
    let (kind, cause) = match new {
        NewIncident::Outage(cause) => ("Outage", cause),
        NewIncident::Cause(cause) => ("Cause", Some(cause)),
    };
    let insert = sqlx::query_scalar(
        "insert into incident (customer_id, id, project_id, kind, fingerprint, headline, begun_at,
             last_seen_at)
         values ($1, next_id(null), $2, $3, $4, coalesce($5, ''), $6, $6)
         returning id",
    );
    let insert = insert
        .bind(customer)
        .bind(execution.project_id)
        .bind(kind)
        .bind(cause.map(|cause| &cause.fingerprint))
        .bind(cause.map(|cause| &cause.headline))
        .bind(execution.request_time);
    Ok(insert.fetch_one(&mut **tx).await?)
}

/// Adds executions to those that an incident affects.
pub(super) async fn add(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    incident: IncidentId,
    executions: &[ExecutionId],
) -> Result<(), Fault> {
    for statement in [
        "insert into incident_execution (customer_id, incident_id, execution_id, test_set_id)
         select $1, $2, id, test_set_id from execution where customer_id = $1 and id = any($3)
         on conflict on constraint incident_execution_pkey do nothing",
        "update incident i
         set executions = affected.executions, test_sets = affected.test_sets,
             begun_at = least(begun_at, first), last_seen_at = greatest(last_seen_at, last)
         from (
             select count(*)::int as executions, count(distinct a.test_set_id)::int as test_sets,
                    min(e.request_time) filter (where e.id = any($3)) as first,
                    max(e.request_time) filter (where e.id = any($3)) as last
             from incident_execution a
             join execution e on e.customer_id = a.customer_id and e.id = a.execution_id
             where a.customer_id = $1 and a.incident_id = $2
         ) as affected
         where i.customer_id = $1 and i.id = $2",
    ] {
        let statement = sqlx::query(statement).bind(customer).bind(incident).bind(executions);
        statement.execute(&mut **tx).await?;
    }
    Ok(())
}

/// Ends the incidents of the test set of an execution that do not affect it, nor a later one of this set.
pub(super) async fn end(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: &Completed,
) -> Result<Vec<IncidentId>, Fault> {
    let end = sqlx::query_scalar(
        "update incident i
         set ended_at = $5, ended_by_execution_id = $4
         where customer_id = $1 and project_id = $2 and ended_at is null and $4 > (
             select (array_agg(a.execution_id order by a.execution_id desc))[1]
             from incident_execution a
             where a.customer_id = $1 and a.incident_id = i.id and a.test_set_id = $3
         )
         returning id",
    );
    let end = end
        .bind(customer)
        .bind(execution.project_id)
        .bind(execution.test_set_id)
        .bind(execution.id)
        .bind(execution.completion_date_time);
    Ok(end.fetch_all(&mut **tx).await?)
}

/// Lists the incidents of a project, newest first.
pub(super) async fn list(
    db: &PgPool,
    customer: CustomerId,
    project: ProjectId,
    slice: &Slice,
) -> Result<Rows<IncidentEntry>, Fault> {
    let columns = IncidentEntry::COLUMNS;
    let incidents = sqlx::query_as(AssertSqlSafe(format!(
        "select {columns} from incident
         where customer_id = $1 and project_id = $2 and id < $3
           and ($4::text is null or headline ilike $4)
         order by id desc
         limit $5"
    )))
    .bind(customer)
    .bind(project)
    .bind(slice.before()?)
    .bind(slice.pattern.as_deref())
    .bind(slice.limit);
    slice.read(incidents.fetch(db)).await
}

/// Returns an incident with the latest executions that it affects.
pub(super) async fn get(
    db: &PgPool,
    customer: CustomerId,
    project: ProjectId,
    id: IncidentId,
) -> Result<Incident, Fault> {
    let columns = Incident::COLUMNS;
    let incident: Option<Incident> = sqlx::query_as(AssertSqlSafe(format!(
        "select {columns} from incident where customer_id = $1 and project_id = $2 and id = $3"
    )))
    .bind(customer)
    .bind(project)
    .bind(id)
    .fetch_optional(db)
    .await?;
    let incident = incident.ok_or(Fault::NotFound("incident"))?;
    let columns = IncidentExecution::COLUMNS;
    let affected = sqlx::query_as(AssertSqlSafe(format!(
        "select {columns}
         from incident_execution a
         join live_execution e on e.customer_id = $1 and e.id = a.execution_id
         where a.customer_id = $1 and a.incident_id = $2
         order by a.execution_id desc
         limit {LISTED}"
    )));
    let affected = affected.bind(customer).bind(id).fetch_all(db).await?;
    Ok(Incident { affected, ..incident })
}
