//! Known failures in PostgreSQL. Every statement is bound to one customer.

use assay_auth::Caller;
use assay_fingerprint::Fingerprint;
use assay_proto::{
    CustomerId, Fault, KnownFailureId, OnConstraint, ProjectId, TestCaseId, Timestamp,
    execution::{FailureMatch, KnownFailure, KnownFailureInput},
};
use assay_records::Action;
use assay_rpc::list::{Rows, Slice};
use sqlx::{
    AssertSqlSafe, PgExecutor, PgPool, PgTransaction, Postgres, postgres::PgArguments,
    query::QueryAs,
};

use super::rules::{LONGEST, MOST, NewKnownFailure};

/// Reads known failures, with the last execution of each. `rest` selects and orders them. That of a test case is sought
/// among the reports of this test case: other test cases may have had the cause a million times since.
fn select(rest: &'static str) -> QueryAs<'static, Postgres, KnownFailure, PgArguments> {
    let columns = KnownFailure::COLUMNS;
    sqlx::query_as(AssertSqlSafe(format!(
        "select {columns} from known_failure k
         left join lateral (
             (select e.request_time, r.test_case_name
              from kept_failure f
              join execution e on e.customer_id = f.customer_id and e.id = f.execution_id
              join test_report r on r.customer_id = f.customer_id and r.id = f.test_report_id
              where f.customer_id = k.customer_id and f.project_id = k.project_id
                and f.fingerprint = k.fingerprint and k.test_case_id is null
              order by f.execution_id desc
              limit 1)
             union all
             (select e.request_time, r.test_case_name
              from test_report r
              join execution e on e.customer_id = r.customer_id and e.id = r.execution_id
              where r.customer_id = k.customer_id and r.test_case_id = k.test_case_id
                and e.expired_at is null and exists (
                    select from failure f
                    where f.customer_id = r.customer_id and f.test_report_id = r.id
                      and f.fingerprint = k.fingerprint
                )
              order by r.execution_id desc
              limit 1)
         ) as last on true
         {rest}"
    )))
}

/// Returns the time until which failures may be muted now.
pub async fn latest_end(db: impl PgExecutor<'_>) -> Result<Timestamp, Fault> {
    let latest = sqlx::query_scalar("select now() + make_interval(days => $1)");
    Ok(latest.bind(LONGEST).fetch_one(db).await?)
}

/// Lists the known failures of a project, newest first.
pub async fn list(
    db: &PgPool,
    customer: CustomerId,
    project: ProjectId,
    slice: &Slice,
) -> Result<Rows<KnownFailure>, Fault> {
    let known = select(
        "where k.customer_id = $1 and k.project_id = $2 and k.id < $3
           and ($4::text is null or concat_ws(E'\\n', k.headline, k.ticket, k.comment) ilike $4)
         order by k.id desc
         limit $5",
    );
    let known = known
        .bind(customer)
        .bind(project)
        .bind(slice.before()?)
        .bind(slice.pattern.as_deref())
        .bind(slice.limit);
    slice.read(known.fetch(db)).await
}

pub async fn get(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: KnownFailureId,
) -> Result<KnownFailure, Fault> {
    let known = select("where k.customer_id = $1 and k.project_id = $2 and k.id = $3");
    let known = known.bind(customer).bind(project).bind(id).fetch_optional(db).await?;
    known.ok_or(Fault::NotFound("known failure"))
}

pub async fn lock(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: KnownFailureId,
) -> Result<KnownFailure, Fault> {
    let known =
        select("where k.customer_id = $1 and k.project_id = $2 and k.id = $3 for update of k");
    let known = known.bind(customer).bind(project).bind(id).fetch_optional(&mut **tx).await?;
    known.ok_or(Fault::NotFound("known failure"))
}

/// Stores a known failure, with the message of a failure that it is about. Fails if there is none.
pub async fn create(
    tx: &mut PgTransaction<'_>,
    caller: &Caller,
    project: ProjectId,
    known: &NewKnownFailure,
) -> Result<KnownFailureId, Fault> {
    let insert = sqlx::query_scalar(
        "insert into known_failure (customer_id, id, project_id, fingerprint, test_case_id,
             ticket, comment, muted_until, created_by_id, created_by, headline)
         select $1, next_id(null), $2, $3, $4, $5, $6, $7, $8, $9, headline
         from kept_failure
         where customer_id = $1 and project_id = $2 and fingerprint = $3
           and ($4::uuid is null or test_case_id = $4)
         order by execution_id desc
         limit 1
         returning id",
    );
    let id: Option<KnownFailureId> = insert
        .bind(caller.customer)
        .bind(project)
        .bind(&known.fingerprint.as_bytes()[..])
        .bind(known.test_case)
        .bind(&known.ticket)
        .bind(&known.comment)
        .bind(known.muted_until)
        .bind(caller.user)
        .bind(&*caller.name)
        .fetch_optional(&mut **tx)
        .await
        .on_constraint("known_failure_cause_key", Fault::AlreadyExists("known failure"))?;
    id.ok_or_else(|| {
        let field = if known.test_case.is_some() { "TestCaseId" } else { "Fingerprint" };
        Fault::invalid(field, "must be of a failure of the project")
    })
}

/// Fails if a project has more known failures than it may have.
pub async fn check_number(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
) -> Result<(), Fault> {
    let count = sqlx::query_scalar(
        "select count(*) from known_failure where customer_id = $1 and project_id = $2",
    );
    let count: i64 = count.bind(customer).bind(project).fetch_one(&mut **tx).await?;
    if count <= MOST {
        return Ok(());
    }
    let reason = format!(
        "a project may have {MOST} known failures: mute causes for every test case, or delete \
         known failures that have ended"
    );
    Err(Fault::Refused { code: "too_many_known_failures", reason })
}

/// Writes the fields that clients change.
pub async fn save(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: KnownFailureId,
    input: &KnownFailureInput,
) -> Result<(), Fault> {
    let update = sqlx::query(
        "update known_failure
         set ticket = $3, comment = $4, muted_until = $5, revision = revision + 1,
             is_expired = is_expired and $5 <= now(), is_announced = is_announced and $5 <= muted_until,
             review_id = null, before_review = null
         where customer_id = $1 and id = $2",
    );
    update
        .bind(customer)
        .bind(id)
        .bind(input.ticket.as_deref().unwrap_or_default())
        .bind(input.comment.as_deref().unwrap_or_default())
        .bind(input.muted_until)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

pub async fn delete(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: KnownFailureId,
) -> Result<(), Fault> {
    let delete = sqlx::query(
        "delete from known_failure where customer_id = $1 and project_id = $2 and id = $3",
    );
    let done = delete.bind(customer).bind(project).bind(id).execute(&mut **tx).await?;
    if done.rows_affected() == 0 { Err(Fault::NotFound("known failure")) } else { Ok(()) }
}

/// Lists the test cases that a cause has made fail in these days, by their ids.
pub async fn matches(
    db: &PgPool,
    customer: CustomerId,
    project: ProjectId,
    fingerprint: Fingerprint,
    days: i32,
    slice: &Slice,
) -> Result<Rows<FailureMatch>, Fault> {
    let after = TestCaseId::from_field_if_any("cursor", slice.after.as_deref())?;
    let matches = sqlx::query_as(
        "select matched.test_case_id, r.test_case_identifier, r.test_case_name,
                matched.executions, e.request_time as last_seen
         from (
             select test_case_id, count(distinct execution_id)::int as executions,
                    (array_agg(test_report_id order by execution_id desc))[1] as report
             from kept_failure
             where customer_id = $1 and project_id = $2 and fingerprint = $3
               and execution_id >= first_id_at(now() - make_interval(days => $4))
               and ($5::uuid is null or test_case_id > $5)
             group by test_case_id
             order by test_case_id
             limit $6
         ) as matched
         join test_report r on r.customer_id = $1 and r.id = matched.report
         join execution e on e.customer_id = $1 and e.id = r.execution_id
         order by matched.test_case_id",
    );
    let matches: Vec<FailureMatch> = matches
        .bind(customer)
        .bind(project)
        .bind(&fingerprint.as_bytes()[..])
        .bind(days)
        .bind(after)
        .bind(slice.limit)
        .fetch_all(db)
        .await?;
    Ok(matches.into())
}

/// Moves known failures from causes to those that their failures have now, in pairs. A cause that has become
/// several stays known in each of them; of known failures that become one, the latest end counts. Returns what
/// was created, changed and deleted.
pub async fn follow(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    (before, now): (&[Vec<u8>], &[Vec<u8>]),
) -> Result<Vec<(KnownFailureId, Action)>, Fault> {
    // In the order of those that a review makes, so that the two do not deadlock.
    let lock = sqlx::query(
        "select from known_failure
         where customer_id = $1 and project_id = $2
           and (fingerprint = any($3) or fingerprint = any($4))
         order by fingerprint, test_case_id
         for update",
    );
    lock.bind(customer).bind(project).bind(before).bind(now).execute(&mut **tx).await?;
    let copy = sqlx::query_as(
        "insert into known_failure (customer_id, id, project_id, fingerprint, test_case_id, headline,
             ticket, comment, muted_until, created_by_id, created_by, created_at, is_expired, is_announced,
             review_id, before_review)
         select distinct on (moved.now, k.test_case_id)
                k.customer_id, next_id(null), k.project_id, moved.now, k.test_case_id, k.headline,
                k.ticket, k.comment, k.muted_until, k.created_by_id, k.created_by, k.created_at,
                k.is_expired, k.is_announced, k.review_id, k.before_review
         from unnest($3::bytea[], $4::bytea[]) as moved (before, now)
         join known_failure k
             on k.customer_id = $1 and k.project_id = $2 and k.fingerprint = moved.before
         order by moved.now, k.test_case_id, k.muted_until desc
         on conflict on constraint known_failure_cause_key do update
         set muted_until = greatest(known_failure.muted_until, excluded.muted_until),
             is_expired = known_failure.is_expired and excluded.is_expired,
             is_announced = known_failure.is_announced and excluded.is_announced,
             revision = known_failure.revision + 1
         returning id, xmax = 0",
    );
    let copied: Vec<(KnownFailureId, bool)> =
        copy.bind(customer).bind(project).bind(before).bind(now).fetch_all(&mut **tx).await?;
    // A known failure without failures would mute nothing any more.
    let remove = sqlx::query_scalar(
        "delete from known_failure k
         where k.customer_id = $1 and k.project_id = $2 and k.fingerprint = any($3)
           and not exists (
               select from failure f
               where f.customer_id = $1 and f.project_id = $2 and f.fingerprint = k.fingerprint
           )
         returning id",
    );
    let removed: Vec<KnownFailureId> =
        remove.bind(customer).bind(project).bind(before).fetch_all(&mut **tx).await?;
    let copied = copied
        .into_iter()
        .map(|(id, is_new)| (id, if is_new { Action::Created } else { Action::Changed }));
    Ok(copied.chain(removed.into_iter().map(|id| (id, Action::Deleted))).collect())
}
