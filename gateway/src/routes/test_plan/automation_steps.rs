//! `…/testplans/{testPlanId}/automationSteps`.

use assay_auth::Caller;
use assay_proto::catalog::{
    AutomationStep, AutomationStepInput, AutomationSteps, GetAutomationStepsRequest,
    ReplaceAutomationStepsRequest,
};
use axum::{
    RequestExt,
    extract::{FromRequest, Request, State},
};
use serde::{Deserialize, Serialize, Serializer};
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use super::PlanPath;
use crate::{
    body::{self, Fields, one_or_many::OneOrMany},
    path::Path,
    problem::Problem,
    query::Query,
    response::{Json, Resource},
    services::{Services, TestPlans},
    update::IfMatch,
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(get, replace))
}

/// The new steps of a plan.
type StepInputs = OneOrMany<AutomationStepInput>;

/// Automation steps as a JSON array, with the version of their plan.
struct Steps(AutomationSteps);

impl Serialize for Steps {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.items.serialize(serializer)
    }
}

impl Resource for Steps {
    fn data_version(&self) -> Option<&str> {
        Some(&self.0.data_version)
    }
}

/// The steps to return; all by default.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct SelectionQuery {
    /// Return only steps whose comment contains this text, ignoring case.
    #[param(example = "sandbox")]
    comment: Option<String>,
    /// Maximum number of steps to return.
    #[param(value_type = Option<i32>, minimum = 0, example = 20)]
    count: Option<String>,
}

/// The parameters of [`SelectionQuery`], which clients may also send as a body.
#[derive(Deserialize)]
struct Selection {
    comment: Option<String>,
    #[serde(default, deserialize_with = "assay_proto::optional_integer")]
    count: Option<i32>,
}

impl FromRequest<Services> for Selection {
    type Rejection = Problem;

    async fn from_request(mut request: Request, services: &Services) -> Result<Self, Problem> {
        let query = request.extract_parts_with_state::<Query<SelectionQuery>, _>(services);
        let Query(query) = query.await?;
        if let Some(body) = body::read(request).await? {
            let fields: Fields<'_> = body::parse(body.check()?)?;
            return body::read_fields(&fields);
        }
        let count = query.count.map(|text| text.parse()).transpose();
        let count =
            count.map_err(|_| Problem::invalid("count", "must be a whole number, at least 0"))?;
        Ok(Self { comment: query.comment, count })
    }
}

/// Returns the automation steps of a test plan, ordered by number.
///
/// The parameters can also be sent as the fields of a JSON body.
#[utoipa::path(
    get, tag = "Test plans", operation_id = "get_automation_steps", params(SelectionQuery),
    path = "/api/projects/{projectId}/testcases/{testCaseId}/testplans/{testPlanId}/automationSteps",
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.TestPlanService/GetAutomationSteps"))),
    responses((
        status = OK, description = "The steps", body = [AutomationStep],
        headers(("ETag" = String, description = "The `DataVersion` of the plan, a dot and a fingerprint of the body, in quotes")),
    )),
)]
async fn get(
    State(mut plans): State<TestPlans>,
    caller: Caller,
    Path((project_id, test_case_id, test_plan_id)): Path<PlanPath>,
    Selection { comment, count }: Selection,
) -> Result<Json<Steps>, Problem> {
    let request =
        GetAutomationStepsRequest { project_id, test_case_id, test_plan_id, comment, count };
    let steps = plans.get_automation_steps(caller.call(request)).await?;
    Ok(Json(Steps(steps.into_inner())))
}

/// Replaces the automation steps of a test plan that has not been executed.
#[utoipa::path(
    put, tag = "Test plans", operation_id = "replace_automation_steps", params(IfMatch),
    path = "/api/projects/{projectId}/testcases/{testCaseId}/testplans/{testPlanId}/automationSteps",
    request_body(content = Vec<AutomationStepInput>,
        description = "The new steps. A single one may be sent without the array."),
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.TestPlanService/ReplaceAutomationSteps"))),
    responses((
        status = OK, description = "The new steps", body = [AutomationStep],
        headers(("ETag" = String, description = "The `DataVersion` of the plan, a dot and a fingerprint of the body, in quotes")),
    )),
)]
async fn replace(
    State(mut plans): State<TestPlans>,
    caller: Caller,
    Path((project_id, test_case_id, test_plan_id)): Path<PlanPath>,
    IfMatch(data_version): IfMatch,
    OneOrMany(steps): StepInputs,
) -> Result<Json<Steps>, Problem> {
    let request = ReplaceAutomationStepsRequest {
        project_id,
        test_case_id,
        test_plan_id,
        data_version,
        steps,
    };
    let steps = plans.replace_automation_steps(caller.call(request)).await?;
    Ok(Json(Steps(steps.into_inner())))
}
