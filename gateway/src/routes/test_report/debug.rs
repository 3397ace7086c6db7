//! `…/testreports/{testReportId}/debug`: all records about a test report, collected from several
//! services.

use assay_auth::Caller;
use assay_proto::{
    catalog::{DebugProject, DebugTestCase, DebugTestPlan, GetOriginRequest, Origin},
    execution::{DebugReport, DebugResult, DebugSchedule, DebugTestReport, GetDebugRecordRequest},
    identity::Customer,
};
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{
    router::{OpenApiRouter, UtoipaMethodRouterExt},
    routes,
};

use crate::{
    path::{Path, read_only, shortened},
    problem::Problem,
    response::{Resource, Streamed, StreamedInArray, StreamedResource},
    services::{Customers, DebugRecords, Lookups, Services},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(get).map(read_only)).routes(shortened(routes!(get)))
}

/// All records about a test report, including deleted ones.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "PascalCase")]
struct DebugRecord {
    customer: DebugCustomer,
    #[schema(value_type = DebugProject)]
    project: Option<DebugProject>,
    #[schema(value_type = DebugTestCase)]
    test_case: Option<DebugTestCase>,
    #[schema(value_type = DebugTestPlan)]
    test_plan: Option<DebugTestPlan>,
    #[schema(value_type = DebugTestReport)]
    test_report: Option<DebugTestReport>,
    /// The schedules of the test report.
    schedules: Vec<DebugSchedule>,
    /// The finished instances, ordered by number.
    results: Vec<DebugResult>,
}

/// The customer that a test report belongs to.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "PascalCase")]
struct DebugCustomer {
    #[schema(format = Uuid)]
    id: String,
    name: String,
    /// The DNS label that the customer's host starts with.
    subdomain: String,
    /// Always null: customers do not have a storage of their own.
    #[schema(required = true)]
    storage_account: Option<String>,
    /// The target groups of the customer's engines, separated by commas.
    #[schema(required = true)]
    appliances: Option<String>,
    archived: bool,
    /// Always false: a deleted customer has no callers.
    deleted: bool,
}

impl From<Customer> for DebugCustomer {
    fn from(customer: Customer) -> Self {
        Self {
            id: customer.id,
            name: customer.name,
            subdomain: customer.subdomain,
            storage_account: None,
            appliances: customer.appliances,
            archived: customer.archived,
            deleted: false,
        }
    }
}

impl Resource for DebugReport {}

impl StreamedResource for DebugReport {
    type Item = DebugResult;

    fn into_items(self) -> Vec<DebugResult> {
        self.results
    }
}

/// Returns all records about a test report, including deleted ones.
#[utoipa::path(
    get, tag = "Test reports", operation_id = "get_debug_record",
    path = "/api/projects/0/testcases/0/testplans/0/testreports/{testReportId}/debug",
    extensions(("x-grpc-method" = json!("/assay.execution.v1.DebugService/GetDebugRecord"))),
    responses((status = OK, description = "One debug record", body = [DebugRecord])),
)]
async fn get(
    State(mut records): State<DebugRecords>,
    State(mut lookups): State<Lookups>,
    State(mut customers): State<Customers>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StreamedInArray<DebugRecord, DebugReport>, Problem> {
    let request = GetDebugRecordRequest { id };
    let report = Streamed::of(records.get_debug_record(caller.call(request)).await?).await?;
    let origin = GetOriginRequest {
        project_id: report.first.project_id.clone(),
        test_case_id: report.first.test_case_id.clone(),
        test_plan_id: report.first.test_plan_id.clone(),
    };
    let (origin, customer) = futures::try_join!(
        lookups.get_origin(caller.call(origin)),
        customers.get_current_customer(caller.call(())),
    )?;
    let Origin { project, test_case, test_plan } = origin.into_inner();
    Ok(report.map_first(|DebugReport { test_report, schedules, results, .. }| DebugRecord {
        customer: customer.into_inner().into(),
        project,
        test_case,
        test_plan,
        test_report,
        schedules,
        results,
    }))
}
