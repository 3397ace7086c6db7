//! Changes of test cases, which are gathered.
//!
//! A change is based on the record as it was read, and is written only if the record still has that
//! revision. So no transaction or lock spans several statements. A change that loses to another one,
//! or whose record another transaction has locked, is repeated alone.

use std::collections::{HashMap, HashSet};

use assay_auth::actor;
use assay_fair::{Gather, Shares};
use assay_proto::{
    Actor, CustomerId, Fault, InputArrays, OnConstraint, ProjectId, TestCaseId,
    catalog::{TestCase, TestCaseInput, UpdateTestCaseRequest},
};
use assay_records::{Action, Change};
use serde_json::json;
use sqlx::{AssertSqlSafe, PgPool};
use tonic::Status;
use uuid::Uuid;

use super::rules;
use crate::{
    event::EventSource,
    records::{ProjectRecord, get_all, padded},
};

/// Number of times that a change may lose to others.
const MOST_LOST: usize = 20;

/// A change of a test case.
#[derive(Clone)]
pub(super) struct CaseChange {
    id: TestCaseId,
    change: Change<TestCaseInput>,
    trace: String,
    actor: Actor,
}

/// The outcome of a change, none if it lost to another one.
pub(super) type Outcome = Result<Option<TestCase>, Status>;

impl TryFrom<UpdateTestCaseRequest> for CaseChange {
    type Error = Fault;

    fn try_from(request: UpdateTestCaseRequest) -> Result<Self, Fault> {
        let UpdateTestCaseRequest { id, data_version, changes, fields, trace } = request;
        let change = Change { data_version, changes, fields };
        let (trace, actor) = (json!(trace).to_string(), actor::current());
        Ok(Self { id: TestCaseId::from_path(&id)?, change, trace, actor })
    }
}

/// Changes of which those in one project are gathered.
pub(super) struct Changes {
    db: PgPool,
    shares: Shares,
    /// Returns none for a change that lost to another one.
    gathered: Gather<(CustomerId, ProjectId), CaseChange, Option<TestCase>>,
}

impl Changes {
    pub(super) fn new(db: &PgPool, shares: &Shares) -> Self {
        let pool = db.clone();
        let process = move |(customer, project), changes: Vec<CaseChange>| {
            let db = pool.clone();
            async move { Ok(change_all(&db, customer, project, &changes).await?) }
        };
        let gathered = Gather::new(shares, process);
        Self { db: db.clone(), shares: shares.clone(), gathered }
    }

    /// Carries out changes in a project. Returns an outcome for each, none for a change that lost to
    /// another one. If it `waits`, it repeats those alone.
    pub(super) async fn run(
        &self,
        customer: CustomerId,
        project: ProjectId,
        changes: Vec<Result<CaseChange, Fault>>,
        waits: bool,
    ) -> Result<Vec<Outcome>, Status> {
        let repeatable: Vec<_> =
            changes.iter().map(|change| change.as_ref().ok().filter(|_| waits).cloned()).collect();
        let mut outcomes = self.gathered.run_all((customer, project), changes).await?;
        for (outcome, change) in outcomes.iter_mut().zip(repeatable) {
            if let (Ok(None), Some(change)) = (&outcome, change) {
                *outcome = self.run_alone(customer, project, &change).await.map(Some);
            }
        }
        Ok(outcomes)
    }

    async fn run_alone(
        &self,
        customer: CustomerId,
        project: ProjectId,
        change: &CaseChange,
    ) -> Result<TestCase, Status> {
        let _share = self.shares.acquire(customer).await?;
        Ok(change_alone(&self.db, customer, project, change).await?)
    }
}

/// Changes test cases. Returns an outcome for each change.
async fn change_all(
    db: &PgPool,
    customer: CustomerId,
    project: ProjectId,
    changes: &[CaseChange],
) -> Result<Vec<Result<Option<TestCase>, Fault>>, Fault> {
    let mut ids: Vec<_> = changes.iter().map(|change| change.id).collect();
    ids.sort_unstable();
    ids.dedup();
    let found = current_all(db, customer, project, &ids).await?;
    let mut current: HashMap<_, _> = ids.into_iter().zip(found).collect();

    let mut outcomes = HashMap::new();
    while outcomes.len() < changes.len() {
        // One change of each record.
        let mut ids = HashSet::new();
        let pending = changes.iter().enumerate().filter(|(index, _)| !outcomes.contains_key(index));
        let round: Vec<_> = pending.filter(|(_, change)| ids.insert(change.id)).collect();
        let mut new = Vec::new();
        for (index, change) in round {
            match current.get(&change.id) {
                Some(Ok(case)) => match New::of(change, case) {
                    Ok(case) => new.push((index, case)),
                    Err(fault) => drop(outcomes.insert(index, Err(fault))),
                },
                Some(Err(_)) => drop(outcomes.insert(index, Err(Fault::NotFound("test case")))),
                // An earlier change of the record has lost.
                None => drop(outcomes.insert(index, Ok(None))),
            }
        }
        let cases: Vec<_> = new.iter().map(|(_, case)| case).collect();
        let mut written = match update(db, customer, project, &cases, "skip locked").await {
            // The identifier of one of them is taken.
            Err(Fault::AlreadyExists(_)) => HashMap::new(),
            written => written?,
        };
        for (index, case) in new {
            let written = written.remove(&case.id.to_string());
            current.remove(&case.id);
            current.extend(written.clone().map(|written| (case.id, Ok(written))));
            outcomes.insert(index, Ok(written));
        }
    }
    Ok((0..changes.len()).filter_map(|index| outcomes.remove(&index)).collect())
}

/// Returns the test case with each id, without its plans.
async fn current_all(
    db: &PgPool,
    customer: CustomerId,
    project: ProjectId,
    ids: &[TestCaseId],
) -> Result<Vec<Result<TestCase, Fault>>, Fault> {
    get_all(db, (customer, Some(project)), ids, TestCase::COLUMNS_TO_CHANGE).await
}

/// Changes a test case, and waits for a transaction that has locked it.
async fn change_alone(
    db: &PgPool,
    customer: CustomerId,
    project: ProjectId,
    change: &CaseChange,
) -> Result<TestCase, Fault> {
    for _ in 0..MOST_LOST {
        for current in current_all(db, customer, project, &[change.id]).await? {
            let new = New::of(change, &current?)?;
            let written = update(db, customer, project, &[&new], "").await?;
            if let Some(case) = written.into_values().next() {
                return Ok(case);
            }
        }
    }
    Err(Fault::Stale("test case"))
}

/// A test case as it is to be written.
struct New<'a> {
    id: TestCaseId,
    /// Revision that the change is based on.
    revision: i64,
    input: TestCaseInput,
    action: Action,
    trace: &'a str,
    actor: &'a Actor,
}

impl<'a> New<'a> {
    fn of(change: &'a CaseChange, current: &TestCase) -> Result<Self, Fault> {
        let version = current.data_version.as_deref().unwrap_or_default();
        let input = TestCaseInput {
            // A test case keeps its identifier.
            identifier: Some(current.identifier.clone()),
            ..change.change.clone().apply("test case", current, version)?
        };
        let input = rules::valid(input)?;
        Ok(Self {
            id: change.id,
            revision: version.parse().map_err(Fault::internal)?,
            action: Action::of_change(current.archived, input.archived),
            input,
            trace: &change.trace,
            actor: &change.actor,
        })
    }
}

/// Writes test cases with their events in one statement. Returns by their ids those that still had
/// the revision. `lock` says what to do about those that another transaction has locked.
async fn update(
    db: &PgPool,
    customer: CustomerId,
    project: ProjectId,
    cases: &[&New<'_>],
    lock: &'static str,
) -> Result<HashMap<String, TestCase>, Fault> {
    let Some(first) = cases.first() else { return Ok(HashMap::new()) };
    let (columns, arrays) = (TestCaseInput::new_columns(), TestCaseInput::arrays(9));
    let assignments = TestCaseInput::new_assignments();
    let returned = TestCase::COLUMNS_OF_RECORD.join(", ");
    // PostgreSQL looks up the records by their ids whatever it expects of the table: a lateral subquery
    // with a limit is carried out for one after the other, and of a limit that it does not know when it
    // plans, it expects a tenth of the ten elements that it assumes for an array.
    let update = sqlx::query_as(AssertSqlSafe(format!(
        "with locked as (
             select from project where customer_id = $1 and id = $2 and deleted_at is null
             for key share
         ), unlocked as (
             select found.id from unnest($3::uuid[]) as wanted (id)
             cross join locked
             cross join lateral (
                 select id from test_case
                 where customer_id = $1 and project_id = $2 and id = wanted.id
                   and deleted_at is null
                 limit 1
                 for no key update {lock}
             ) as found
             limit (select cardinality($3::uuid[]))
         ), changed as (
             update test_case set {assignments}, revision = revision + 1
             from unnest($3::uuid[], $4::bigint[], {arrays}) as new (new_id, seen, {columns})
             where customer_id = $1 and id = new_id and revision = seen
               and new_id in (select id from unlocked)
             returning {returned}
         ), event as (
             insert into outbox (event_id, customer_id, record, noun, action, data, trace)
             select event_id, $1, id::text, 'test_case', action, data::json, trace::jsonb
             from unnest($3::uuid[], $5::uuid[], $6::text[], $7::text[], $8::text[])
                 as event (id, event_id, action, data, trace)
             where id in (select changed.id from changed)
         )
         table changed"
    )));
    let data = |case: &&New<'_>| {
        let version = (case.revision + 1).to_string();
        let source = EventSource::TestCase(project, case.id);
        json!(source.data(case.action, Some(&version), case.actor.clone())).to_string()
    };
    let inputs = cases.iter().map(|case| &case.input);
    let inputs = padded(inputs.collect(), &first.input);
    let ids = cases.iter().map(|case| Some(case.id));
    let update = update
        .bind(customer)
        .bind(project)
        .bind(padded(ids.collect(), None))
        .bind(cases.iter().map(|case| case.revision).collect::<Vec<_>>())
        .bind(cases.iter().map(|_| Uuid::now_v7()).collect::<Vec<_>>())
        .bind(cases.iter().map(|case| case.action.name().to_lowercase()).collect::<Vec<_>>())
        .bind(cases.iter().map(data).collect::<Vec<_>>())
        .bind(cases.iter().map(|case| case.trace).collect::<Vec<_>>());
    let changed: Vec<TestCase> =
        TestCaseInput::bind_all(&inputs, update).fetch_all(db).await.on_constraint(
            "test_case_identifier_key",
            Fault::AlreadyExists("test case with this identifier"),
        )?;
    Ok(changed.into_iter().map(|case| (case.id.clone(), case)).collect())
}
