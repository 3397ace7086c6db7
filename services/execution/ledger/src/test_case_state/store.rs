//! The states of test cases in PostgreSQL. Every statement is bound to one customer.

use std::collections::HashMap;

use assay_auth::Caller;
use assay_proto::{
    CustomerId, Fault, MonitorId, ProjectId, TestCaseId, Timestamp, UserId,
    catalog::TestCaseName,
    execution::{CaseState, TestCaseState},
    name_of,
};
use assay_rpc::list::{Rows, Slice};
use sqlx::{
    AssertSqlSafe, PgExecutor, PgPool, PgTransaction, Postgres, postgres::PgArguments,
    query::QueryAs,
};
use uuid::Uuid;

use super::rules::{LONGEST, MOST, NewState, comment};
use crate::known_failure::expiry::NOTICE_IN_H;

/// Maximum number of states that expire in a transaction.
const EXPIRED_AT_ONCE: i64 = 500;

/// The user or the monitor that sets a state. A monitor has a name.
#[derive(Clone, Copy)]
pub enum Author<'a> {
    User(&'a Caller),
    Monitor(MonitorId, &'a str),
}

impl Author<'_> {
    fn user(self) -> Option<UserId> {
        if let Self::User(caller) = self { Some(caller.user) } else { None }
    }

    fn monitor(self) -> Option<MonitorId> {
        if let Self::Monitor(id, _) = self { Some(id) } else { None }
    }

    fn name(&self) -> &str {
        match self {
            Self::User(caller) => &caller.name,
            Self::Monitor(_, name) => name,
        }
    }
}

/// Reads states that are in force. `rest` selects and orders them.
fn select(rest: &'static str) -> QueryAs<'static, Postgres, TestCaseState, PgArguments> {
    let columns = TestCaseState::COLUMNS;
    sqlx::query_as(AssertSqlSafe(format!(
        "select {columns} from test_case_state s
         left join lateral (
             select test_case_identifier, test_case_name from test_report r
             where r.customer_id = s.customer_id and r.test_case_id = s.test_case_id
             order by execution_id desc
             limit 1
         ) as last on true
         where s.customer_id = $1 and s.project_id = $2 and s.until > now() and {rest}"
    )))
}

/// Returns the time until which a state may last now.
pub async fn latest_end(db: impl PgExecutor<'_>) -> Result<Timestamp, Fault> {
    let latest = sqlx::query_scalar("select now() + make_interval(days => $1)");
    Ok(latest.bind(LONGEST).fetch_one(db).await?)
}

/// Lists the test cases of a project that are not enabled, those first that were created last.
pub async fn list(
    db: &PgPool,
    customer: CustomerId,
    project: ProjectId,
    state: Option<CaseState>,
    slice: &Slice,
) -> Result<Rows<TestCaseState>, Fault> {
    let states = select(
        "s.test_case_id < $3 and ($4::text is null or s.state = $4)
           and ($5::text is null or concat_ws(E'\\n', s.test_case_identifier, s.test_case_name,
                   last.test_case_identifier, last.test_case_name, s.ticket, s.reason, s.owner)
               ilike $5)
         order by s.test_case_id desc
         limit $6",
    );
    let states = states
        .bind(customer)
        .bind(project)
        .bind(slice.before()?)
        .bind(state.map(name_of))
        .bind(slice.pattern.as_deref())
        .bind(slice.limit);
    slice.read(states.fetch(db)).await
}

/// Returns the state of a test case that is not enabled.
pub async fn find(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    project: ProjectId,
    case: TestCaseId,
) -> Result<Option<TestCaseState>, Fault> {
    let state = select("s.test_case_id = $3");
    Ok(state.bind(customer).bind(project).bind(case).fetch_optional(db).await?)
}

/// Locks the state of a test case, and returns it unless the test case is enabled. An enabled one has no row to lock, so
/// that two users could both change it.
pub async fn lock(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    case: TestCaseId,
) -> Result<Option<TestCaseState>, Fault> {
    let lock =
        "select pg_advisory_xact_lock(hashtextextended('assay test case state ' || $1::text, 0))";
    sqlx::query(lock).bind(case).execute(&mut **tx).await?;
    let state = select("s.test_case_id = $3 for update of s");
    Ok(state.bind(customer).bind(project).bind(case).fetch_optional(&mut **tx).await?)
}

/// Sets the state of a test case. Returns the version, and whether the test case was enabled before. Versions begin with
/// the time, so that those before and after a test case was enabled differ.
pub async fn set(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    (case, name): (TestCaseId, &TestCaseName),
    state: &NewState,
    author: Author<'_>,
) -> Result<(i64, bool), Fault> {
    let set = sqlx::query_as(
        "insert into test_case_state as s (customer_id, project_id, test_case_id,
             test_case_identifier, test_case_name, state, until, ticket, reason, owner,
             changed_by_id, changed_by, monitor_id, revision)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13,
             (extract(epoch from clock_timestamp()) * 1000000)::bigint)
         on conflict on constraint test_case_state_pkey do update
         set test_case_identifier = excluded.test_case_identifier,
             test_case_name = excluded.test_case_name, state = excluded.state,
             until = excluded.until, ticket = excluded.ticket, reason = excluded.reason,
             owner = excluded.owner, changed_by_id = excluded.changed_by_id,
             changed_by = excluded.changed_by, monitor_id = excluded.monitor_id,
             changed_at = now(), is_announced = false, revision = s.revision + 1
         returning revision, xmax = 0",
    );
    Ok(set
        .bind(customer)
        .bind(project)
        .bind(case)
        .bind(&name.identifier)
        .bind(&name.name)
        .bind(name_of(state.state))
        .bind(state.until)
        .bind(&state.ticket)
        .bind(&state.reason)
        .bind(&state.owner)
        .bind(author.user())
        .bind(author.name())
        .bind(author.monitor())
        .fetch_one(&mut **tx)
        .await?)
}

/// Counts the test cases of a project that are not enabled.
pub async fn count(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
) -> Result<i64, Fault> {
    let count = sqlx::query_scalar(
        "select count(*) from test_case_state where customer_id = $1 and project_id = $2",
    );
    Ok(count.bind(customer).bind(project).fetch_one(&mut **tx).await?)
}

/// Fails if a project has more test cases that are not enabled than it may have.
pub(super) async fn check_number(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
) -> Result<(), Fault> {
    if count(tx, customer, project).await? <= MOST {
        return Ok(());
    }
    let reason = format!(
        "a project may have {MOST} test cases that are muted or skipped: enable some, or mute causes \
         for every test case"
    );
    Err(Fault::Refused { code: "too_many_test_case_states", reason })
}

/// Enables a test case; with a monitor, only if that has set its state. Returns whether it did.
pub(super) async fn delete(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    case: TestCaseId,
    monitor: Option<MonitorId>,
) -> Result<bool, Fault> {
    let delete = sqlx::query(
        "delete from test_case_state
         where customer_id = $1 and project_id = $2 and test_case_id = $3
           and ($4::uuid is null or monitor_id = $4)",
    );
    let delete = delete.bind(customer).bind(project).bind(case).bind(monitor);
    Ok(delete.execute(&mut **tx).await?.rows_affected() > 0)
}

/// Enables test cases of all customers whose states have ended, and returns them.
pub async fn expire(
    tx: &mut PgTransaction<'_>,
) -> Result<Vec<(CustomerId, ProjectId, TestCaseId)>, Fault> {
    let expired = sqlx::query_as(
        "delete from test_case_state s
         using (
             select customer_id, project_id, test_case_id from test_case_state
             where until <= now()
             order by until
             limit $1
             for update skip locked
         ) as ended
         where s.customer_id = ended.customer_id and s.project_id = ended.project_id
           and s.test_case_id = ended.test_case_id
         returning s.customer_id, s.project_id, s.test_case_id",
    );
    Ok(expired.bind(EXPIRED_AT_ONCE).fetch_all(&mut **tx).await?)
}

/// Marks states of all customers that end soon, and returns their test cases.
pub async fn announce(
    tx: &mut PgTransaction<'_>,
) -> Result<Vec<(CustomerId, ProjectId, TestCaseId)>, Fault> {
    let announced = sqlx::query_as(
        "update test_case_state s
         set is_announced = true
         from (
             select customer_id, project_id, test_case_id from test_case_state
             where until > now() and until <= now() + make_interval(hours => $2)
               and not is_announced
             order by until
             limit $1
             for no key update skip locked
         ) as ending
         where s.customer_id = ending.customer_id and s.project_id = ending.project_id
           and s.test_case_id = ending.test_case_id
         returning s.customer_id, s.project_id, s.test_case_id",
    );
    Ok(announced.bind(EXPIRED_AT_ONCE).bind(NOTICE_IN_H).fetch_all(&mut **tx).await?)
}

/// Returns those of some test cases that are skipped now, with the comments of their reports.
pub async fn skipped(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: &str,
    cases: &[&str],
) -> Result<HashMap<String, String>, Fault> {
    if cases.is_empty() {
        return Ok(HashMap::new());
    }
    let skipped: Vec<(Uuid, Timestamp, String, String)> = sqlx::query_as(
        "select test_case_id, until, ticket, reason from test_case_state
         where customer_id = $1 and project_id = $2::uuid
           and test_case_id = any($3::text[]::uuid[]) and state = 'Skipped' and until > now()",
    )
    .bind(customer)
    .bind(project)
    .bind(cases)
    .persistent(false)
    .fetch_all(&mut **tx)
    .await?;
    let comments = skipped.into_iter();
    Ok(comments
        .map(|(case, until, ticket, reason)| (case.to_string(), comment(until, &ticket, &reason)))
        .collect())
}
