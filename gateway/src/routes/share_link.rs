//! `…/executions/{executionId}/shares`.

use assay_auth::Caller;
use assay_proto::execution::{
    CreateShareLinkRequest, DeleteShareLinkRequest, ListShareLinksRequest, NewShareLink, ShareLink,
    ShareLinkInput,
};
use axum::extract::State;
use http::StatusCode;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    body::Body,
    list::{List, Listing},
    path::{Path, ShortRoutes, unless_zero},
    problem::Problem,
    response::{Created, Json, Resource},
    services::{Services, ShareLinks},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes_also_short(routes!(list, create)).routes_also_short(routes!(delete))
}

impl Resource for NewShareLink {}

/// Returns the path of an execution, as the request has it.
fn path_of(project_id: &str, execution_id: &str) -> String {
    match project_id {
        "" => format!("/api/executions/{execution_id}"),
        _ => format!("/api/projects/{project_id}/executions/{execution_id}"),
    }
}

/// Lists the share links of an execution that have not expired, newest first.
///
/// `q` searches in the names of the users
/// who created them.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/executions/{executionId}/shares",
    operation_id = "list_share_links", tag = "Share links", params(Listing),
    extensions(("x-grpc-method" = json!("/assay.execution.v1.ShareLinkService/ListShareLinks"))),
    responses((status = OK, description = "The share links", body = [ShareLink])),
)]
async fn list(
    State(mut links): State<ShareLinks>,
    caller: Caller,
    Path((project_id, execution_id)): Path<(String, String)>,
    listing: Listing,
) -> Result<List, Problem> {
    let (project_id, page) = (unless_zero(project_id), Some(listing.page()));
    let request = ListShareLinksRequest { project_id, execution_id, page };
    listing.respond(links.list_share_links(caller.call(request)).await?).await
}

/// Creates a share link, by which readers without an account see the execution.
///
/// They see results, messages, steps and stored files, but no comments, tickets, users or
/// other executions. Only this response contains the link. An execution may have 100.
#[utoipa::path(
    post, path = "/api/projects/{projectId}/executions/{executionId}/shares",
    operation_id = "create_share_link", tag = "Share links", request_body = ShareLinkInput,
    extensions(("x-grpc-method" = json!("/assay.execution.v1.ShareLinkService/CreateShareLink"))),
    responses((status = CREATED, description = "The share link", body = NewShareLink)),
)]
async fn create(
    State(mut links): State<ShareLinks>,
    caller: Caller,
    Path((project_id, execution_id)): Path<(String, String)>,
    Body(input): Body<ShareLinkInput>,
) -> Result<Created<Json<NewShareLink>>, Problem> {
    let execution = path_of(&project_id, &execution_id);
    let (project_id, share_link) = (unless_zero(project_id), Some(input));
    let request = CreateShareLinkRequest { project_id, execution_id, share_link };
    let created = links.create_share_link(caller.call(request)).await?.into_inner();
    Ok(Created(format!("{execution}/shares/{}", created.id), Json(created)))
}

/// Revokes a share link immediately.
#[utoipa::path(
    delete, path = "/api/projects/{projectId}/executions/{executionId}/shares/{shareLinkId}",
    operation_id = "delete_share_link", tag = "Share links",
    extensions(("x-grpc-method" = json!("/assay.execution.v1.ShareLinkService/DeleteShareLink"))),
    responses((status = NO_CONTENT, description = "The share link has been revoked")),
)]
async fn delete(
    State(mut links): State<ShareLinks>,
    caller: Caller,
    Path((project_id, execution_id, id)): Path<(String, String, String)>,
) -> Result<StatusCode, Problem> {
    let request = DeleteShareLinkRequest { project_id: unless_zero(project_id), execution_id, id };
    links.delete_share_link(caller.call(request)).await?;
    Ok(StatusCode::NO_CONTENT)
}
