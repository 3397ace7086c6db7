//! `/api/projects`.

use assay_auth::Caller;
use assay_proto::catalog::{
    CreateProjectRequest, DeleteProjectRequest, GetProjectRequest, ListFilter, ListProjectsRequest,
    Project, ProjectEntry, ProjectInput, UpdateProjectRequest,
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
    services::{Projects, Services},
    update::{Updatable, Update},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(list_archived))
        .routes(routes!(list_favorites))
        .routes(routes!(list_recent))
        .routes(routes!(get, update, delete))
}

impl Resource for Project {
    fn data_version(&self) -> Option<&str> {
        Some(&self.data_version)
    }
}

impl Updatable for ProjectInput {}

/// Lists the projects that are not archived, newest first.
#[utoipa::path(
    get, path = "/api/projects", operation_id = "list_projects", tag = "Projects",
    params(Listing),
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.ProjectService/ListProjects"))),
    responses((status = OK, description = "The projects", body = [ProjectEntry])),
)]
async fn list(
    State(projects): State<Projects>,
    caller: Caller,
    listing: Listing,
) -> Result<List, Problem> {
    list_of(projects, &caller, listing, ListFilter::Unspecified).await
}

/// Lists the projects that are in the archive, newest first.
#[utoipa::path(
    get, path = "/api/projects/archive",
    operation_id = "list_projects_in_archive", tag = "Projects", params(Listing),
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.ProjectService/ListProjects"))),
    responses((status = OK, description = "The projects", body = [ProjectEntry])),
)]
async fn list_archived(
    State(projects): State<Projects>,
    caller: Caller,
    listing: Listing,
) -> Result<List, Problem> {
    list_of(projects, &caller, listing, ListFilter::Archive).await
}

/// Lists the projects that are favorites of the caller, newest first.
///
/// Archived items are excluded.
#[utoipa::path(
    get, path = "/api/projects/favorites",
    operation_id = "list_projects_in_favorites", tag = "Projects", params(Listing),
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.ProjectService/ListProjects"))),
    responses((status = OK, description = "The projects", body = [ProjectEntry])),
)]
async fn list_favorites(
    State(projects): State<Projects>,
    caller: Caller,
    listing: Listing,
) -> Result<List, Problem> {
    list_of(projects, &caller, listing, ListFilter::Favorites).await
}

/// Lists the twenty projects that the caller opened most recently, latest first.
#[utoipa::path(
    get, path = "/api/projects/recent",
    operation_id = "list_projects_recent", tag = "Projects", params(Listing),
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.ProjectService/ListProjects"))),
    responses((status = OK, description = "The projects", body = [ProjectEntry])),
)]
async fn list_recent(
    State(projects): State<Projects>,
    caller: Caller,
    listing: Listing,
) -> Result<List, Problem> {
    list_of(projects, &caller, listing, ListFilter::Recent).await
}

async fn list_of(
    mut projects: Projects,
    caller: &Caller,
    listing: Listing,
    filter: ListFilter,
) -> Result<List, Problem> {
    let request = ListProjectsRequest { page: Some(listing.page()), filter: filter.into() };
    listing.respond(projects.list_projects(caller.call(request)).await?).await
}

/// Returns a project.
#[utoipa::path(
    get, path = "/api/projects/{projectId}", operation_id = "get_project", tag = "Projects",
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.ProjectService/GetProject"))),
    responses((status = OK, description = "The project", body = Project)),
)]
async fn get(
    State(mut projects): State<Projects>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Project>, Problem> {
    let project = projects.get_project(caller.call(GetProjectRequest { id })).await?;
    Ok(Json(project.into_inner()))
}

/// Adds a project.
#[utoipa::path(
    post, path = "/api/projects", operation_id = "create_project", tag = "Projects",
    request_body = ProjectInput,
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.ProjectService/CreateProject"))),
    responses((status = CREATED, description = "The new project", body = Project)),
)]
async fn create(
    State(mut projects): State<Projects>,
    caller: Caller,
    Body(input): Body<ProjectInput>,
) -> Result<Created<Json<Project>>, Problem> {
    let request = CreateProjectRequest { project: Some(input) };
    let project = projects.create_project(caller.call(request)).await?.into_inner();
    Ok(Created(format!("/api/projects/{}", project.id), Json(project)))
}

/// Changes a project, or moves it into the archive or out of it.
#[utoipa::path(
    put, path = "/api/projects/{projectId}", operation_id = "update_project", tag = "Projects",
    request_body = ProjectInput,
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.ProjectService/UpdateProject"))),
    responses((status = OK, description = "The changed project", body = Project)),
)]
async fn update(
    State(mut projects): State<Projects>,
    caller: Caller,
    Path(id): Path<String>,
    Update { changes, fields, data_version, .. }: Update<ProjectInput>,
) -> Result<Json<Project>, Problem> {
    let request = UpdateProjectRequest { id, data_version, changes: Some(changes), fields };
    let project = projects.update_project(caller.call(request)).await?;
    Ok(Json(project.into_inner()))
}

/// Deletes a project with all of its records, including executions.
///
/// They are inaccessible immediately, and removed in the background.
#[utoipa::path(
    delete, path = "/api/projects/{projectId}",
    operation_id = "delete_project", tag = "Projects",
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.ProjectService/DeleteProject"))),
    responses((status = NO_CONTENT, description = "The project has been deleted")),
)]
async fn delete(
    State(mut projects): State<Projects>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    projects.delete_project(caller.call(DeleteProjectRequest { id })).await?;
    Ok(StatusCode::NO_CONTENT)
}
