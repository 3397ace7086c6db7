//! Test cases in PostgreSQL. Every statement is bound to one customer.

use assay_proto::{
    CustomerId, Fault, OnConstraint, ProjectId, TestCaseId,
    catalog::{TestCase, TestCaseEntry, TestCaseInput},
};
use assay_records::Action;
use assay_runtime::{
    begin,
    list::{Rows, Slice},
    trace,
};
use sqlx::{
    AssertSqlSafe, PgExecutor, PgPool, PgTransaction, Postgres, postgres::PgArguments,
    query::QueryAs, types::Json,
};
use uuid::Uuid;

use super::identifiers;
use crate::{project, record::Record, shelf::Shelf};

/// The columns of a test case without its plans.
pub(crate) const COLUMNS: &str = "test_case.id, test_case.identifier, test_case.name,
     test_case.description, test_case.last_plan_status, test_case.last_report_status,
     test_case.last_result, test_case.last_sw_name, test_case.last_sw_identifier,
     test_case.execution_statistics, test_case.revision::text as data_version, test_case.archived,
     test_case.project_id";

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

/// Reads a test case with its plans; `rest` says which.
fn select(rest: &str) -> QueryAs<'static, Postgres, TestCase, PgArguments> {
    sqlx::query_as(AssertSqlSafe(format!("select {COLUMNS}, {PLANS} from test_case {rest}")))
}

pub(super) async fn get(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    project: Option<ProjectId>,
    id: TestCaseId,
) -> Result<TestCase, Fault> {
    let live = project::store::is_live("project_id");
    select(&format!(
        "where customer_id = $1 and id = $2 and ($3::uuid is null or project_id = $3)
           and deleted_at is null and {live}"
    ))
    .bind(customer)
    .bind(id)
    .bind(project)
    .fetch_optional(db)
    .await?
    .ok_or(Fault::NotFound("test case"))
}

/// Reads a test case and keeps others from changing it, and from adding plans, meanwhile.
pub(crate) async fn lock(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: TestCaseId,
) -> Result<TestCase, Fault> {
    project::store::hold(tx, customer, project).await?;
    let case = sqlx::query_as(AssertSqlSafe(format!(
        "select {COLUMNS} from test_case
         where customer_id = $1 and id = $2 and project_id = $3 and deleted_at is null
         for no key update"
    )));
    case.bind(customer)
        .bind(id)
        .bind(project)
        .fetch_optional(&mut **tx)
        .await?
        .ok_or(Fault::NotFound("test case"))
}

/// Makes sure that there is such a test case.
pub(crate) async fn find(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: TestCaseId,
) -> Result<(), Fault> {
    let live = project::store::is_live("$3");
    sqlx::query(AssertSqlSafe(format!(
        "select from test_case
         where customer_id = $1 and id = $2 and project_id = $3 and deleted_at is null and {live}"
    )))
    .bind(customer)
    .bind(id)
    .bind(project)
    .fetch_optional(db)
    .await?
    .map(drop)
    .ok_or(Fault::NotFound("test case"))
}

/// Lists a slice of a shelf's test cases in a project.
pub(super) async fn list(
    db: impl PgExecutor<'_>,
    shelf: Shelf,
    project: ProjectId,
    slice: &Slice,
) -> Result<Rows<TestCaseEntry>, Fault> {
    let (condition, order) = (shelf.condition(), shelf.order());
    let live = project::store::is_live("$3");
    let cases = sqlx::query_as(AssertSqlSafe(format!(
        "select id, identifier, name, description, last_plan_status, last_report_status,
                last_result, last_sw_name, last_sw_identifier, execution_statistics
         from test_case
         where customer_id = $1 and project_id = $3 and id < $4 and {condition} and {live}
           and ($5::text is null or name ilike $5 or identifier ilike $5)
         order by {order}
         limit $6"
    )));
    let cases = cases
        .bind(shelf.customer)
        .bind(shelf.user)
        .bind(project)
        .bind(shelf.before(slice)?)
        .bind(&slice.pattern)
        .bind(shelf.limit(slice));
    shelf.read(cases.fetch(db), slice).await
}

/// Adds a test case, with an identifier of our own if it comes without.
pub(super) async fn create(
    db: &PgPool,
    customer: CustomerId,
    project: ProjectId,
    case: &TestCaseInput,
) -> Result<TestCase, Fault> {
    loop {
        match insert(db, customer, project, case).await {
            // The next number is in an identifier that somebody chose.
            Err(Fault::AlreadyExists(_)) if case.identifier.is_none() => {}
            done => return done,
        }
        let mut tx = begin(db).await?;
        let identifier = identifiers::free(&mut tx, customer, project, 1).await?.pop();
        let case = TestCaseInput { identifier, ..case.clone() };
        match insert(&mut *tx, customer, project, &case).await {
            // Somebody has chosen it at the same moment.
            Err(Fault::AlreadyExists(_)) => {}
            Err(fault) => return Err(fault),
            Ok(created) => {
                tx.commit().await?;
                return Ok(created);
            }
        }
    }
}

/// Adds a test case and tells others, in one statement: with several, creations cost twice as much.
async fn insert(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    project: ProjectId,
    case: &TestCaseInput,
) -> Result<TestCase, Fault> {
    let id = TestCaseId::new();
    let told = Record::TestCase(project, id).changed(Action::Created);
    let statement = format!(
        "with named as (
             select $4::text as identifier from project
             where customer_id = $1 and id = $2 and deleted_at is null and $4::text is not null
             for key share
         ), numbered as (
             update project set last_case_number = last_case_number + 1
             where customer_id = $1 and id = $2 and deleted_at is null and $4::text is null
             returning 'TC-' || last_case_number as identifier
         ), created as (
             insert into test_case (customer_id, project_id, id, identifier, name, description)
             select $1, $2, $3, identifier, $5, $6 from (table named union all table numbered) place
             returning {COLUMNS}, '[]'::jsonb as test_plan_list
         ), told as (
             insert into outbox (event_id, customer_id, record, noun, action, data, trace)
             select $7, $1, id::text, 'test_case', 'created', $8, $9 from created
         )
         table created"
    );
    sqlx::query_as(AssertSqlSafe(statement))
        .bind(customer)
        .bind(project)
        .bind(id)
        .bind(&case.identifier)
        .bind(&case.name)
        .bind(&case.description)
        .bind(Uuid::now_v7())
        .bind(Json(told))
        .bind(Json(trace::to_map()))
        .fetch_optional(db)
        .await
        .on_constraint("test_case_identifier_key", Fault::AlreadyExists("test case"))?
        .ok_or(Fault::NotFound("project"))
}

/// Replaces what a client may write of a locked test case.
pub(super) async fn update(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: TestCaseId,
    case: &TestCaseInput,
) -> Result<TestCase, Fault> {
    let statement = format!(
        "update test_case
         set name = $3, description = $4, archived = $5, revision = revision + 1
         where customer_id = $1 and id = $2
         returning {COLUMNS}, {PLANS}"
    );
    sqlx::query_as(AssertSqlSafe(statement))
        .bind(customer)
        .bind(id)
        .bind(&case.name)
        .bind(&case.description)
        .bind(case.archived)
        .fetch_one(&mut **tx)
        .await
        .on_constraint("test_case_identifier_key", Fault::AlreadyExists("test case"))
}
