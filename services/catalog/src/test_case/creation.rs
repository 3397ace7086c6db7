//! Creations of single test cases, which are gathered.

use std::collections::HashMap;

use assay_auth::actor;
use assay_database::begin;
use assay_fair::{Gather, Shares};
use assay_proto::{
    Actor, CustomerId, Fault, InputArrays, InputColumns, ProjectId, TestCaseId,
    catalog::{CreateTestCaseRequest, TestCase, TestCaseInput},
};
use assay_records::Action;
use serde_json::json;
use sqlx::{AssertSqlSafe, PgExecutor, PgPool};
use uuid::Uuid;

use super::{identifiers, rules};
use crate::{event::EventSource, project::store as projects, records::padded};

/// Creations, of which those in one project are gathered.
pub(super) type Creations = Gather<(CustomerId, ProjectId), Creation, TestCase>;

/// A test case to create. One without an identifier gets the next free number.
#[derive(Clone)]
pub(super) struct Creation {
    id: TestCaseId,
    input: TestCaseInput,
    trace: String,
    actor: Actor,
}

impl TryFrom<CreateTestCaseRequest> for Creation {
    type Error = Fault;

    fn try_from(request: CreateTestCaseRequest) -> Result<Self, Fault> {
        let input = rules::valid(rules::new(request.test_case.unwrap_or_default()))?;
        let (trace, actor) = (json!(request.trace).to_string(), actor::current());
        Ok(Self { id: TestCaseId::new(), input, trace, actor })
    }
}

pub(super) fn gather(db: &PgPool, shares: &Shares) -> Creations {
    let db = db.clone();
    Gather::new(shares, move |(customer, project), creations: Vec<Creation>| {
        let db = db.clone();
        async move { Ok(create(&db, customer, project, &creations).await?) }
    })
}

/// Creates test cases. Returns an outcome for each.
async fn create(
    db: &PgPool,
    customer: CustomerId,
    project: ProjectId,
    creations: &[Creation],
) -> Result<Vec<Result<TestCase, Fault>>, Fault> {
    let mut created = insert(db, customer, project, creations).await?;
    if created.is_empty() {
        projects::find(db, customer, project).await?;
    }
    let mut outcomes = Vec::new();
    for creation in creations {
        outcomes.push(match created.remove(&creation.id.to_string()) {
            Some(case) => Ok(case),
            None if creation.input.identifier.is_some() => Err(taken()),
            // The next number is in an identifier that a client chose.
            None => create_with_free_number(db, customer, project, creation).await,
        });
    }
    Ok(outcomes)
}

async fn create_with_free_number(
    db: &PgPool,
    customer: CustomerId,
    project: ProjectId,
    creation: &Creation,
) -> Result<TestCase, Fault> {
    loop {
        let mut tx = begin(db).await?;
        let identifier = identifiers::free(&mut tx, customer, project, 1).await?.pop();
        let input = TestCaseInput { identifier, ..creation.input.clone() };
        let creation = Creation { input, ..creation.clone() };
        // A client may choose the number at the same moment.
        let created = insert(&mut *tx, customer, project, &[creation]).await?.into_values().next();
        if let Some(case) = created {
            tx.commit().await?;
            return Ok(case);
        }
    }
}

/// Adds test cases with their events in one statement, except those whose identifier is taken.
/// Returns the added ones by their ids; none without the project.
async fn insert(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    project: ProjectId,
    creations: &[Creation],
) -> Result<HashMap<String, TestCase>, Fault> {
    let (columns, arrays, returned) =
        (TestCaseInput::COLUMNS, TestCaseInput::arrays(10), TestCase::COLUMNS);
    let insert = sqlx::query_as(AssertSqlSafe(format!(
        "with numbered as (
             update project set last_case_number = last_case_number + $3
             where customer_id = $1 and id = $2 and deleted_at is null and $3 > 0
             returning last_case_number - $3 as last
         ), locked as (
             select 0::bigint as last from project
             where customer_id = $1 and id = $2 and deleted_at is null and $3 = 0
             for key share
         ), created as (
             insert into test_case (customer_id, project_id, id, identifier, {columns})
             select $1, $2, id, coalesce(identifier, 'TC-' || (last + number)), {columns}
             from (table numbered union all table locked) numbers,
                  unnest($4::uuid[], $5::text[], $6::bigint[], {arrays})
                      as input (id, identifier, number, {columns})
             where id is not null
             -- In one order, so that transactions do not deadlock.
             order by identifier, number
             on conflict (customer_id, project_id, identifier) where live do nothing
             returning {returned}, '[]'::jsonb as test_plan_list
         ), event as (
             insert into outbox (event_id, customer_id, record, noun, action, data, trace)
             select event_id, $1, id::text, 'test_case', 'created', data::json, trace::jsonb
             from unnest($4::uuid[], $7::uuid[], $8::text[], $9::text[])
                 as event (id, event_id, data, trace)
             where id in (select created.id from created)
         )
         table created"
    )));
    let numbers = numbers(creations);
    let data = |creation: &Creation| {
        let (source, actor) = (EventSource::TestCase(project, creation.id), creation.actor.clone());
        json!(source.data(Action::Created, Some("1"), actor)).to_string()
    };
    let insert = insert
        .bind(customer)
        .bind(project)
        .bind(numbers.iter().flatten().max().copied().unwrap_or_default())
        .bind(padded(creations.iter().map(|creation| Some(creation.id)).collect(), None))
        .bind(creations.iter().map(|creation| &creation.input.identifier).collect::<Vec<_>>())
        .bind(numbers)
        .bind(creations.iter().map(|_| Uuid::now_v7()).collect::<Vec<_>>())
        .bind(creations.iter().map(data).collect::<Vec<_>>())
        .bind(creations.iter().map(|creation| &*creation.trace).collect::<Vec<_>>());
    let Some(first) = creations.first() else { return Ok(HashMap::new()) };
    let inputs = padded(creations.iter().map(|creation| &creation.input).collect(), &first.input);
    let created: Vec<TestCase> = TestCaseInput::bind_all(&inputs, insert).fetch_all(db).await?;
    Ok(created.into_iter().map(|case| (case.id.clone(), case)).collect())
}

/// Returns the position of each creation among those without an identifier, from 1 on.
fn numbers(creations: &[Creation]) -> Vec<Option<i64>> {
    let mut last = 0;
    let number = |creation: &Creation| {
        creation.input.identifier.is_none().then(|| {
            last += 1;
            last
        })
    };
    creations.iter().map(number).collect()
}

fn taken() -> Fault {
    Fault::AlreadyExists("test case with this identifier")
}
