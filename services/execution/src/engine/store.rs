//! Engines and the lengths of queues in PostgreSQL. Every statement that reads is bound to one customer.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use assay_ledger::schedule::queue::{QueueName, QueuePart};
use assay_proto::{
    CustomerId, EngineId, Fault, PoolId, ProjectId, Timestamp,
    execution::{Engine, EngineLease, QueuePool},
};
use assay_rpc::list::Slice;
use sqlx::{AssertSqlSafe, FromRow, PgExecutor, types::Json};
use uuid::Uuid;

/// Maximum number of engines of a customer.
pub(super) const MOST_ENGINES: usize = 1000;

/// Maximum number of tests that are counted.
const MOST_COUNTED: i64 = 100_000;

/// Maximum number of tests of all customers that are counted. Each replica counts them every few seconds.
const MOST_COUNTED_OF_ALL: i64 = 1_000_000;

/// The condition that a schedule `s` of the customer `$1` is not that of a deleted project, whose work no engine gets.
const IS_LIVE: &str =
    "s.project_id <> all(array(select project_id from deletion where customer_id = $1))";

/// Separates the labels of an engine, which have no control characters, and its projects.
const SEPARATOR: &str = "\u{1f}";

/// An engine as its last request describes it.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) customer: CustomerId,
    pub(super) name: String,
    pub(super) target_group: String,
    pub(super) labels: Vec<String>,
    pub(super) project_ids: Vec<String>,
    pub(super) version: String,
}

pub(super) async fn upsert(db: impl PgExecutor<'_>, seen: &[Seen]) -> Result<(), Fault> {
    let texts = |of: fn(&Seen) -> &str| seen.iter().map(of).collect::<Vec<_>>();
    let joined = |of: fn(&Seen) -> &[String]| {
        seen.iter().map(|engine| of(engine).join(SEPARATOR)).collect::<Vec<_>>()
    };
    sqlx::query(
        "insert into engine (customer_id, id, name, target_group, labels, version, project_ids)
         select customer, id, name, target_group, string_to_array(labels, $7), version,
             string_to_array(projects, $7)::uuid[]
         from unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[],
             $8::text[]) as seen (customer, id, name, target_group, labels, version, projects)
         on conflict on constraint engine_name_key do update
         set target_group = excluded.target_group, labels = excluded.labels,
             version = excluded.version, project_ids = excluded.project_ids, last_seen_at = now()",
    )
    .bind(seen.iter().map(|engine| engine.customer).collect::<Vec<_>>())
    .bind(seen.iter().map(|_| EngineId::new()).collect::<Vec<_>>())
    .bind(texts(|engine| engine.name.as_str()))
    .bind(texts(|engine| engine.target_group.as_str()))
    .bind(joined(|engine| engine.labels.as_slice()))
    .bind(texts(|engine| engine.version.as_str()))
    .bind(SEPARATOR)
    .bind(joined(|engine| engine.project_ids.as_slice()))
    .execute(db)
    .await?;
    Ok(())
}

/// Removes engines that were not seen for seven days, and those that a customer has too many of.
pub(super) async fn prune(db: &sqlx::PgPool, seen: &[Seen]) -> Result<(), Fault> {
    sqlx::query("delete from engine where last_seen_at < now() - interval '7 days'")
        .execute(db)
        .await?;
    let prune = sqlx::query(
        "delete from engine where (customer_id, id) in (
             select customer_id, id from (
                 select customer_id, id,
                     row_number() over (partition by customer_id order by last_seen_at desc) as nr
                 from engine where customer_id = any($1)
             ) as ranked
             where nr > $2
         )",
    );
    let customers: Vec<_> = seen.iter().map(|engine| engine.customer).collect();
    let most = i64::try_from(MOST_ENGINES).map_err(Fault::internal)?;
    prune.bind(customers).bind(most).execute(db).await?;
    Ok(())
}

/// Removes the engines of a deleted customer.
pub(crate) async fn remove_all(db: impl PgExecutor<'_>, customer: CustomerId) -> Result<(), Fault> {
    let remove = sqlx::query("delete from engine where customer_id = $1");
    remove.bind(customer).execute(db).await?;
    Ok(())
}

#[derive(FromRow)]
struct EngineRow {
    id: EngineId,
    name: String,
    target_group: String,
    labels: Vec<String>,
    project_ids: Vec<String>,
    version: String,
    state: String,
    first_seen_time: Timestamp,
    last_seen_time: Timestamp,
    leases: Json<Vec<EngineLease>>,
}

/// Lists engines with the leases that they hold. A lease that lasts for `lease` was renewed that long
/// before it expires.
pub(super) async fn list(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    lease: Duration,
    slice: &Slice,
) -> Result<Vec<Engine>, Fault> {
    let after = EngineId::from_field_if_any("cursor", slice.after.as_deref())?;
    let rows: Vec<EngineRow> = sqlx::query_as(
        "with held as materialized (
             select l.engine, max(l.expires_at) as expires_at,
                 jsonb_agg(jsonb_build_object('Id', l.id, 'ProjectId', s.project_id,
                     'ExecutionId', l.execution_id, 'TestReportId', s.test_report_id,
                     'TestCaseIdentifier', r.test_case_identifier, 'LeaseTime', l.leased_at)
                     order by l.id) as leases
             from lease l
             join schedule s on s.customer_id = l.customer_id and s.id = l.schedule_id
             join test_report r on r.customer_id = s.customer_id and r.id = s.test_report_id
             join live_execution e on e.customer_id = l.customer_id and e.id = l.execution_id
             where l.customer_id = $1 and l.ended_at is null
             group by l.engine
         )
         select id, name, target_group, labels, project_ids::text[], version, first_seen_at as first_seen_time,
                greatest(last_seen_at, held.expires_at - make_interval(secs => $5))
                    as last_seen_time,
                case when held.leases is not null then 'Busy'
                     when last_seen_at > now() - interval '2 minutes' then 'Idle'
                     else 'Away' end as state,
                coalesce(held.leases, '[]') as leases
         from engine
         left join held on held.engine = engine.name
         where customer_id = $1 and ($2::uuid is null or id > $2)
           and ($3::text is null or name ilike $3)
         order by id
         limit $4",
    )
    .bind(customer)
    .bind(after)
    .bind(slice.pattern.as_deref())
    .bind(slice.limit)
    .bind(lease.as_secs_f64())
    .fetch_all(db)
    .await?;
    let engine = |row: EngineRow| Engine {
        id: row.id.to_string(),
        name: row.name,
        target_group: row.target_group,
        labels: row.labels,
        project_ids: row.project_ids,
        version: row.version,
        state: row.state,
        first_seen_time: Some(row.first_seen_time),
        last_seen_time: Some(row.last_seen_time),
        leases: row.leases.0,
    };
    Ok(rows.into_iter().map(engine).collect())
}

/// Counts the work in each of these parts of queues, and says since when the oldest of it waits. Either all of
/// them or none are the work of one project.
pub(super) async fn lengths(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    parts: &[QueuePart],
) -> Result<Vec<(i64, Option<Timestamp>)>, Fault> {
    let names: Vec<_> = parts.iter().map(|part| part.queue.as_str()).collect();
    let projects: Vec<Option<Uuid>> =
        parts.iter().map(|part| part.project.map(|project| project.0)).collect();
    let is_restricted = projects.iter().any(Option::is_some);
    let of_project = if is_restricted { "project_id = project" } else { "project is null" };
    let lengths = sqlx::query_as(AssertSqlSafe(format!(
        "select queued, since
         from unnest($2::text[], $4::uuid[]) with ordinality as queue (name, project, nr)
         cross join lateral (
             select count(*) as queued, min(initial_queued_time) as since from (
                 select initial_queued_time from schedule s
                 where customer_id = $1 and target_group = name and status = 'Queued'
                   and {of_project} and {IS_LIVE}
                 order by priority desc, id
                 limit $3
             ) as first
         ) as length
         order by nr"
    )));
    let lengths = lengths.bind(customer).bind(names).bind(MOST_COUNTED).bind(projects);
    Ok(lengths.fetch_all(db).await?)
}

/// Returns pools of any project by their ids.
pub(super) async fn pools(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    ids: HashSet<PoolId>,
) -> Result<HashMap<PoolId, QueuePool>, Fault> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let pools: Vec<(PoolId, ProjectId, String)> = sqlx::query_as(
        "select id, project_id, name from pool where customer_id = $1 and id = any($2)",
    )
    .bind(customer)
    .bind(ids.into_iter().collect::<Vec<_>>())
    .fetch_all(db)
    .await?;
    let pools = pools.into_iter().map(|(id, project, name)| {
        let pool = QueuePool { id: id.to_string(), project_id: project.to_string(), name };
        (id, pool)
    });
    Ok(pools.collect())
}

/// Counts the held leases of a customer by the queues of their work, of these projects or of all if there are
/// none.
pub(super) async fn running(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    projects: &[ProjectId],
) -> Result<Vec<(QueueName, i64)>, Fault> {
    let running: Vec<(String, i64)> = sqlx::query_as(AssertSqlSafe(format!(
        "select s.target_group, count(*) from lease l
         join schedule s on s.customer_id = l.customer_id and s.id = l.schedule_id
         where l.customer_id = $1 and l.ended_at is null
           and (cardinality($2::uuid[]) = 0 or s.project_id = any($2)) and {IS_LIVE}
         group by s.target_group"
    )))
    .bind(customer)
    .bind(projects)
    .fetch_all(db)
    .await?;
    Ok(running.into_iter().map(|(name, count)| (QueueName::stored(name), count)).collect())
}

/// Counts the work of all customers by the names of its queues, from an index of queued work alone. That of deleted
/// projects and customers does not count.
pub(super) async fn lengths_of_all(
    db: impl PgExecutor<'_>,
) -> Result<Vec<(QueueName, i64)>, Fault> {
    let lengths: Vec<(String, i64)> = sqlx::query_as(
        "select target_group, count(*)
         from (
             select target_group from schedule s
             where status = 'Queued' and not exists (
                 select from deletion d
                 where d.customer_id = s.customer_id and d.project_id = s.project_id
             ) and not exists (
                 select from deletion d
                 where d.customer_id = s.customer_id
                   and d.project_id = '00000000-0000-0000-0000-000000000000'
             )
             limit $1
         ) as queued
         group by target_group",
    )
    .bind(MOST_COUNTED_OF_ALL)
    .fetch_all(db)
    .await?;
    Ok(lengths.into_iter().map(|(name, count)| (QueueName::stored(name), count)).collect())
}
