//! Test cases in PostgreSQL.

use assay_proto::{
    CustomerId, Fault, InputColumns, OnConstraint, PlanStatus, ProjectId, TestCaseId,
    catalog::{RecordKind, TestCase, TestCaseEntry, TestCaseInput},
    name_of,
};
use assay_records::Action;
use assay_runtime::{begin, trace};
use sqlx::{AssertSqlSafe, PgExecutor, PgPool, PgTransaction, types::Json};
use uuid::Uuid;

use super::identifiers;
use crate::{
    event::EventSource,
    records::{Columns, ProjectRecord},
};

/// The plans of a test case, as a column.
const PLANS: &str = "(
        select coalesce(jsonb_agg(jsonb_build_object(
            'Id', id, 'Description', description, 'Revision', revision, 'TestType', test_type,
            'MinimumDurationInMin', minimum_duration_in_min,
            'MonitoringMessage', monitoring_message, 'Instances', instances
        ) order by revision desc), '[]')
        from test_plan
        where customer_id = test_case.customer_id and test_case_id = test_case.id
          and deleted_at is null
    ) as test_plan_list";

impl ProjectRecord for TestCase {
    type Id = TestCaseId;
    type Entry = TestCaseEntry;

    const KIND: RecordKind = RecordKind::TestCase;
    const TABLE: &'static str = "test_case";
    const NOUN: &'static str = "test case";
    const SEARCH: &'static str = "name ilike $4 or identifier ilike $4";
    const COLUMNS_OF_RECORD: Columns = &[Self::COLUMNS, PLANS];
    const COLUMNS_TO_CHANGE: Columns = &[Self::COLUMNS];
    const COLUMNS_OF_ENTRY: Columns = &[TestCaseEntry::COLUMNS];
}

/// Adds a test case. One without an identifier gets the next free number.
pub(super) async fn create(
    db: &PgPool,
    customer: CustomerId,
    project: ProjectId,
    case: &TestCaseInput,
) -> Result<TestCase, Fault> {
    loop {
        match insert(db, customer, project, case).await {
            // The next number is in an identifier that a client chose.
            Err(Fault::AlreadyExists(_)) if case.identifier.is_none() => {}
            done => return done,
        }
        let mut tx = begin(db).await?;
        let identifier = identifiers::free(&mut tx, customer, project, 1).await?.pop();
        let case = TestCaseInput { identifier, ..case.clone() };
        match insert(&mut *tx, customer, project, &case).await {
            // A client has chosen it at the same moment.
            Err(Fault::AlreadyExists(_)) => {}
            Err(fault) => return Err(fault),
            Ok(created) => {
                tx.commit().await?;
                return Ok(created);
            }
        }
    }
}

/// Adds a test case with its event, in one statement: several statements take twice as long.
async fn insert(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    project: ProjectId,
    case: &TestCaseInput,
) -> Result<TestCase, Fault> {
    let id = TestCaseId::new();
    let event = EventSource::TestCase(project, id).data(Action::Created);
    let (columns, values) = (TestCaseInput::COLUMNS, TestCaseInput::values(8));
    let returned = TestCase::COLUMNS;
    let insert = sqlx::query_as(AssertSqlSafe(format!(
        "with chosen as (
             select $4::text as identifier from project
             where customer_id = $1 and id = $2 and deleted_at is null and $4::text is not null
             for key share
         ), numbered as (
             update project set last_case_number = last_case_number + 1
             where customer_id = $1 and id = $2 and deleted_at is null and $4::text is null
             returning 'TC-' || last_case_number as identifier
         ), created as (
             insert into test_case (customer_id, project_id, id, identifier, {columns})
             select $1, $2, $3, identifier, {values}
             from (table chosen union all table numbered) identified
             returning {returned}, '[]'::jsonb as test_plan_list
         ), event as (
             insert into outbox (event_id, customer_id, record, noun, action, data, trace)
             select $5, $1, id::text, 'test_case', 'created', $6, $7 from created
         )
         table created"
    )));
    let insert = insert
        .bind(customer)
        .bind(project)
        .bind(id)
        .bind(&case.identifier)
        .bind(Uuid::now_v7())
        .bind(Json(event))
        .bind(Json(trace::to_map()));
    case.bind(insert)
        .fetch_optional(db)
        .await
        .on_constraint(
            "test_case_identifier_key",
            Fault::AlreadyExists("test case with this identifier"),
        )?
        .ok_or(Fault::NotFound("project"))
}

/// A test case among many that are added at once.
pub(crate) struct NewTestCase<'a> {
    pub(crate) id: TestCaseId,
    pub(crate) identifier: &'a str,
    pub(crate) name: &'a str,
    pub(crate) description: &'a str,
}

/// Adds test cases, except those whose identifier an active test case has. Returns the ids of the
/// added ones. `plan_status` is the status of the plans that they get.
pub(crate) async fn insert_all(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    plan_status: Option<PlanStatus>,
    cases: &[NewTestCase<'_>],
) -> Result<Vec<TestCaseId>, Fault> {
    let inserted = sqlx::query_scalar(
        "insert into test_case
             (customer_id, project_id, last_plan_status, id, identifier, name, description)
         select $1, $2, $3, id, identifier, name, description
         from unnest($4::uuid[], $5::text[], $6::text[], $7::text[])
             as new (id, identifier, name, description)
         on conflict (customer_id, project_id, identifier) where live do nothing
         returning id",
    );
    let inserted = inserted
        .bind(customer)
        .bind(project)
        .bind(plan_status.map(name_of))
        .bind(cases.iter().map(|case| case.id).collect::<Vec<_>>())
        .bind(cases.iter().map(|case| case.identifier).collect::<Vec<_>>())
        .bind(cases.iter().map(|case| case.name).collect::<Vec<_>>())
        .bind(cases.iter().map(|case| case.description).collect::<Vec<_>>());
    Ok(inserted.fetch_all(&mut **tx).await?)
}

/// Writes the fields of a locked test case. Its identifier never changes.
pub(super) async fn update(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: TestCaseId,
    case: &TestCaseInput,
) -> Result<TestCase, Fault> {
    let assignments = TestCaseInput::assignments(4);
    let returned = TestCase::COLUMNS_OF_RECORD.join(", ");
    let update = sqlx::query_as(AssertSqlSafe(format!(
        "update test_case set {assignments}, revision = revision + 1
         where customer_id = $1 and project_id = $2 and id = $3
         returning {returned}"
    )));
    case.bind(update.bind(customer).bind(project).bind(id))
        .fetch_one(&mut **tx)
        .await
        .on_constraint(
            "test_case_identifier_key",
            Fault::AlreadyExists("test case with this identifier"),
        )
}
