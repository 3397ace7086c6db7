//! Incidents in PostgreSQL. Every statement is bound to one customer.

use assay_proto::{
    CustomerId, ExecutionId, Fault, IncidentId, ProjectId,
    execution::{Incident, IncidentEntry, IncidentExecution},
};
use assay_rpc::list::{Rows, Slice};
use sqlx::{AssertSqlSafe, PgPool, PgTransaction};

use super::evidence::{Cause, Completed, LONGEST_GAP, NEAR, is_of_time};

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

/// Returns the condition that an affected execution `a` is of a series.
fn of_series(set: &str, environment: &str, branch: &str) -> String {
    format!("a.test_set_id = {set} and a.environment_id = {environment} and a.branch = {branch}")
}

/// Returns the incident that an outage belongs to, if there is one.
pub(super) async fn of_outage(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: &Completed,
    cause: Option<&Cause>,
) -> Result<Option<IncidentId>, Fault> {
    let (is_of_time, of_series) = (is_of_time("$4"), of_series("$5", "$6", "$7"));
    let incident = sqlx::query_scalar(AssertSqlSafe(format!(
        "select id from incident i
         where customer_id = $1 and project_id = $2 and {is_of_time}
           and (fingerprint = $3
                or kind = 'Outage' and $4 <= last_seen_at + make_interval(mins => {NEAR})
                or kind = 'Outage' and exists (
                    select from incident_execution a
                    where a.customer_id = $1 and a.incident_id = i.id and {of_series}
                ))
         order by id
         limit 1"
    )));
    let incident = incident
        .bind(customer)
        .bind(execution.project_id)
        .bind(cause.map(|cause| &cause.fingerprint))
        .bind(execution.request_time)
        .bind(execution.test_set_id)
        .bind(execution.environment_id)
        .bind(&execution.branch);
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
    // The numbers grow by what is added, so an incident may affect any number of executions.
    let add = sqlx::query(
        "with added as (
             insert into incident_execution
                 (customer_id, incident_id, execution_id, test_set_id, environment_id, branch)
             select $1, $2, id, test_set_id,
                    coalesce(environment_id, '00000000-0000-0000-0000-000000000000'),
                    coalesce(branch, '')
             from execution where customer_id = $1 and id = any($3)
             on conflict on constraint incident_execution_pkey do nothing
             returning execution_id, test_set_id
         )
         update incident i
         set executions = i.executions + new.executions, test_sets = i.test_sets + new.test_sets,
             begun_at = least(begun_at, first), last_seen_at = greatest(last_seen_at, last)
         from (
             select count(*)::int as executions,
                    (count(distinct added.test_set_id) filter (where not exists (
                        select from incident_execution a
                        where a.customer_id = $1 and a.incident_id = $2
                          and a.test_set_id = added.test_set_id
                    )))::int as test_sets,
                    min(e.request_time) as first, max(e.request_time) as last
             from added
             join execution e on e.customer_id = $1 and e.id = added.execution_id
         ) as new
         where i.customer_id = $1 and i.id = $2",
    );
    add.bind(customer).bind(incident).bind(executions).execute(&mut **tx).await?;
    Ok(())
}

/// Ends the incidents of the series of an execution that do not affect it, nor a later one of this series, and those of
/// the project that have affected none for a long time.
pub(super) async fn end(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: &Completed,
) -> Result<Vec<IncidentId>, Fault> {
    let of_series = of_series("$3", "$6", "$7");
    let end = sqlx::query_scalar(AssertSqlSafe(format!(
        "update incident i
         set ended_at = $5, ended_by_execution_id = case when has_passed then $4 end
         from (
             select o.id, $4 > (
                 select a.execution_id from incident_execution a
                 where a.customer_id = $1 and a.incident_id = o.id and {of_series}
                 order by a.execution_id desc
                 limit 1
             ) as has_passed
             from incident o
             where o.customer_id = $1 and o.project_id = $2 and o.ended_at is null
         ) as unended
         where i.customer_id = $1 and i.id = unended.id
           and (has_passed or i.last_seen_at < $8 - make_interval(days => {LONGEST_GAP}))
         returning i.id"
    )));
    let end = end
        .bind(customer)
        .bind(execution.project_id)
        .bind(execution.test_set_id)
        .bind(execution.id)
        .bind(execution.completion_date_time)
        .bind(execution.environment_id)
        .bind(&execution.branch)
        .bind(execution.request_time);
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
