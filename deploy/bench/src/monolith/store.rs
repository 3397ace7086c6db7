//! Test cases of the baseline in PostgreSQL.

use serde::{Deserialize, Serialize};
use sqlx::{FromRow, PgPool, Result, types::Json};
use uuid::Uuid;

#[derive(Serialize, FromRow)]
#[serde(rename_all = "PascalCase")]
pub(super) struct TestCase {
    id: Uuid,
    identifier: String,
    name: String,
    description: String,
    last_plan_status: Option<String>,
    last_report_status: Option<String>,
    last_result: Option<String>,
    last_sw_name: Option<String>,
    last_sw_identifier: Option<String>,
    execution_statistics: Json<Vec<CaseStatistic>>,
    suites: Vec<String>,
    labels: Json<Vec<Label>>,
    links: Json<Vec<Link>>,
    data_version: String,
    archived: bool,
    test_plan_list: Json<Vec<TestPlan>>,
    project_id: Uuid,
}

impl TestCase {
    pub(super) fn path(&self) -> String {
        format!("/api/projects/{}/testcases/{}", self.project_id, self.id)
    }
}

/// A test case in a list.
#[derive(Serialize, FromRow)]
#[serde(rename_all = "PascalCase")]
pub(super) struct TestCaseEntry {
    pub(super) id: Uuid,
    identifier: String,
    name: String,
    description: String,
    last_plan_status: Option<String>,
    last_report_status: Option<String>,
    last_result: Option<String>,
    last_sw_name: Option<String>,
    last_sw_identifier: Option<String>,
    execution_statistics: Json<Vec<CaseStatistic>>,
    suites: Vec<String>,
    labels: Json<Vec<Label>>,
    links: Json<Vec<Link>>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Label {
    name: String,
    value: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Link {
    kind: String,
    target: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct CaseStatistic {
    execution_number: i32,
    result: String,
    average_duration_in_sec: f64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct TestPlan {
    id: Uuid,
    description: Option<String>,
    revision: i32,
    test_type: String,
    minimum_duration_in_min: f64,
    monitoring_message: Option<String>,
    instances: i32,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct NewTestCase {
    identifier: String,
    name: String,
    #[serde(default)]
    description: String,
}

/// The fields to change; absent ones keep their value.
#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Changes {
    name: Option<String>,
    description: Option<String>,
    archived: Option<bool>,
}

macro_rules! entry {
    () => {
        "id, identifier, name, description, last_plan_status, last_report_status, last_result,
         last_sw_name, last_sw_identifier, execution_statistics, coalesce(suites, '{}') as suites,
         coalesce(labels, '[]') as labels, coalesce(links, '[]') as links"
    };
}

macro_rules! record {
    () => {
        concat!(entry!(), ", project_id, archived, revision::text as data_version")
    };
}

macro_rules! plans {
    () => {
        "(select coalesce(jsonb_agg(jsonb_build_object(
             'Id', id, 'Description', description, 'Revision', revision, 'TestType', test_type,
             'MinimumDurationInMin', minimum_duration_in_min,
             'MonitoringMessage', monitoring_message, 'Instances', instances
         ) order by revision desc), '[]')
         from test_plan
         where customer_id = test_case.customer_id and test_case_id = test_case.id
           and deleted_at is null) as test_plan_list"
    };
}

/// The statement of [`get`], for `pgbench`: customer, project, id.
pub(super) const GET: &str = concat!(
    "select ",
    record!(),
    ", ",
    plans!(),
    " from test_case
     where customer_id = $1 and project_id = $2 and id = $3 and deleted_at is null"
);

/// The statement of [`list`]: customer, project, the id before the page, number of entries.
pub(super) const LIST: &str = concat!(
    "select ",
    entry!(),
    " from test_case
     where customer_id = $1 and project_id = $2 and id < $3 and not archived
       and deleted_at is null
     order by id desc limit $4"
);

/// The statement of [`create`]: customer, project, id, identifier, name, description, event.
pub(super) const CREATE: &str = concat!(
    "with created as (
         insert into test_case (customer_id, project_id, id, identifier, name, description)
         select customer_id, id, $3, $4, $5, $6 from project where customer_id = $1 and id = $2
         returning ",
    record!(),
    ", '[]'::jsonb as test_plan_list
     ), event as (
         insert into outbox (event_id, customer_id, record, noun, action, data, trace)
         select $7, $1, id::text, 'test_case', 'created',
             json_build_object('Id', id, 'ProjectId', project_id), '{}'
         from created
     )
     table created"
);

/// The statement of [`update`]: customer, project, id, name, description, archived, event.
pub(super) const UPDATE: &str = concat!(
    "with changed as (
         update test_case set name = coalesce($4, name), description = coalesce($5, description),
             archived = coalesce($6, archived), revision = revision + 1
         where customer_id = $1 and project_id = $2 and id = $3 and deleted_at is null
         returning ",
    record!(),
    ", ",
    plans!(),
    "), event as (
         insert into outbox (event_id, customer_id, record, noun, action, data, trace)
         select $7, $1, id::text, 'test_case', 'updated',
             json_build_object('Id', id, 'ProjectId', project_id), '{}'
         from changed
     )
     table changed"
);

pub(super) async fn get(
    db: &PgPool,
    customer: Uuid,
    project: Uuid,
    id: Uuid,
) -> Result<Option<TestCase>> {
    sqlx::query_as(GET).bind(customer).bind(project).bind(id).fetch_optional(db).await
}

pub(super) async fn list(
    db: &PgPool,
    customer: Uuid,
    project: Uuid,
    before: Uuid,
    limit: i64,
) -> Result<Vec<TestCaseEntry>> {
    let entries = sqlx::query_as(LIST).bind(customer).bind(project).bind(before).bind(limit);
    entries.fetch_all(db).await
}

pub(super) async fn create(
    db: &PgPool,
    customer: Uuid,
    project: Uuid,
    case: &NewTestCase,
) -> Result<Option<TestCase>> {
    let created = sqlx::query_as(CREATE)
        .bind(customer)
        .bind(project)
        .bind(Uuid::now_v7())
        .bind(&case.identifier)
        .bind(&case.name)
        .bind(&case.description)
        .bind(Uuid::now_v7());
    created.fetch_optional(db).await
}

pub(super) async fn update(
    db: &PgPool,
    customer: Uuid,
    project: Uuid,
    id: Uuid,
    changes: &Changes,
) -> Result<Option<TestCase>> {
    let updated = sqlx::query_as(UPDATE)
        .bind(customer)
        .bind(project)
        .bind(id)
        .bind(&changes.name)
        .bind(&changes.description)
        .bind(changes.archived)
        .bind(Uuid::now_v7());
    updated.fetch_optional(db).await
}
