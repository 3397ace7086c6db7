//! `…/causerules`.

use assay_auth::Caller;
use assay_proto::execution::{
    CauseRule, CauseRuleInput, CauseRulePreview, CreateCauseRuleRequest, DeleteCauseRuleRequest,
    ListCauseRulesRequest, PreviewCauseRuleRequest,
};
use axum::extract::State;
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    body::Body,
    list::{List, Listing},
    path::Path,
    problem::Problem,
    response::{Created, Json, Resource},
    services::{CauseRules, Services},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(preview))
        .routes(routes!(delete))
}

impl Resource for CauseRule {}

impl Resource for CauseRulePreview {}

/// Lists the rules for causes of a project, newest first.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/causerules", operation_id = "list_cause_rules",
    tag = "Causes", params(Listing),
    extensions(("x-grpc-method" = json!("/assay.execution.v1.CauseRuleService/ListCauseRules"))),
    responses((status = OK, description = "The rules", body = [CauseRule])),
)]
async fn list(
    State(mut rules): State<CauseRules>,
    caller: Caller,
    Path(project_id): Path<String>,
    listing: Listing,
) -> Result<List, Problem> {
    let request = ListCauseRulesRequest { project_id, page: Some(listing.page()) };
    listing.respond(rules.list_cause_rules(caller.call(request)).await?).await
}

/// Creates a rule for causes: a pattern of text that does not count, or two causes that are one.
///
/// Results that are reported from now on follow it. The causes of stored failures are derived again in the
/// background, the latest executions first; known failures move along.
#[utoipa::path(
    post, path = "/api/projects/{projectId}/causerules", operation_id = "create_cause_rule",
    tag = "Causes", request_body = CauseRuleInput,
    extensions(("x-grpc-method" = json!("/assay.execution.v1.CauseRuleService/CreateCauseRule"))),
    responses((status = CREATED, description = "The rule", body = CauseRule)),
)]
async fn create(
    State(mut rules): State<CauseRules>,
    caller: Caller,
    Path(project_id): Path<String>,
    Body(input): Body<CauseRuleInput>,
) -> Result<Created<Json<CauseRule>>, Problem> {
    let request = CreateCauseRuleRequest { project_id, cause_rule: Some(input) };
    let created = rules.create_cause_rule(caller.call(request)).await?.into_inner();
    let path = format!("/api/projects/{}/causerules/{}", created.project_id, created.id);
    Ok(Created(path, Json(created)))
}

/// Returns what a rule would join among the failures of the latest executions, and changes nothing.
#[utoipa::path(
    post, path = "/api/projects/{projectId}/causerules/preview",
    operation_id = "preview_cause_rule", tag = "Causes", request_body = CauseRuleInput,
    extensions(("x-grpc-method" = json!("/assay.execution.v1.CauseRuleService/PreviewCauseRule"))),
    responses((status = OK, description = "The causes that it would join", body = CauseRulePreview)),
)]
async fn preview(
    State(mut rules): State<CauseRules>,
    caller: Caller,
    Path(project_id): Path<String>,
    Body(input): Body<CauseRuleInput>,
) -> Result<Json<CauseRulePreview>, Problem> {
    let request = PreviewCauseRuleRequest { project_id, cause_rule: Some(input) };
    Ok(Json(rules.preview_cause_rule(caller.call(request)).await?.into_inner()))
}

/// Deletes a rule. The causes of stored failures are derived again in the background.
#[utoipa::path(
    delete, path = "/api/projects/{projectId}/causerules/{causeRuleId}",
    operation_id = "delete_cause_rule", tag = "Causes",
    extensions(("x-grpc-method" = json!("/assay.execution.v1.CauseRuleService/DeleteCauseRule"))),
    responses((status = NO_CONTENT, description = "Deleted")),
)]
async fn delete(
    State(mut rules): State<CauseRules>,
    caller: Caller,
    Path((project_id, id)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    rules.delete_cause_rule(caller.call(DeleteCauseRuleRequest { project_id, id })).await?;
    Ok(StatusCode::NO_CONTENT)
}
