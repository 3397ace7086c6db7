//! `/api/projects/{projectId}/subjects`.

use assay_auth::Caller;
use assay_proto::catalog::{
    CreateSubjectRequest, DeleteSubjectRequest, GetSubjectRequest, ListSubjectsRequest, Subject,
    SubjectEntry, SubjectInput, UpdateSubjectRequest,
};
use axum::extract::State;
use http::StatusCode;
use serde_json::value::RawValue;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    body::{Body, Fields},
    list::{List, Listing},
    nested::Nested,
    path::Path,
    problem::Problem,
    response::{Created, Json, Resource},
    services::{Services, Subjects},
    update::{Updatable, Update},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(list_archived))
        .routes(routes!(get, update, delete))
}

impl Resource for SubjectEntry {}

impl Resource for Subject {
    fn data_version(&self) -> Option<&str> {
        Some(&self.data_version)
    }
}

/// Accepts the archive flag under `BaseSubjectId`, as existing clients send it; an id is never a
/// boolean.
impl Updatable for SubjectInput {
    fn adapt(fields: &mut Fields<'_>) -> Result<Nested, Problem> {
        let is_flag = |value: &mut &RawValue| matches!(value.get(), "true" | "false");
        if fields.get_mut("BaseSubjectId").is_some_and(is_flag)
            && let Some(flag) = fields.remove("BaseSubjectId")
        {
            fields.entry("Archived".to_owned()).or_insert(flag);
        }
        Ok(Nested::default())
    }
}

/// Lists the subjects of a project that are not archived, newest first.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/subjects", operation_id = "list_subjects",
    tag = "Subjects", params(Listing),
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.SubjectService/ListSubjects"))),
    responses((status = OK, description = "The subjects", body = [SubjectEntry])),
)]
async fn list(
    State(subjects): State<Subjects>,
    caller: Caller,
    Path(project_id): Path<String>,
    listing: Listing,
) -> Result<List, Problem> {
    list_of(subjects, &caller, project_id, listing, false).await
}

/// Lists the subjects of a project that are in the archive, newest first.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/subjects/archive",
    operation_id = "list_subjects_in_archive", tag = "Subjects", params(Listing),
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.SubjectService/ListSubjects"))),
    responses((status = OK, description = "The subjects", body = [SubjectEntry])),
)]
async fn list_archived(
    State(subjects): State<Subjects>,
    caller: Caller,
    Path(project_id): Path<String>,
    listing: Listing,
) -> Result<List, Problem> {
    list_of(subjects, &caller, project_id, listing, true).await
}

async fn list_of(
    mut subjects: Subjects,
    caller: &Caller,
    project_id: String,
    listing: Listing,
    archived: bool,
) -> Result<List, Problem> {
    let request = ListSubjectsRequest { project_id, page: Some(listing.page()), archived };
    listing.respond(subjects.list_subjects(caller.call(request)).await?).await
}

/// Returns a subject with its variables.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/subjects/{subjectId}", operation_id = "get_subject",
    tag = "Subjects",
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.SubjectService/GetSubject"))),
    responses((status = OK, description = "The subject", body = Subject)),
)]
async fn get(
    State(mut subjects): State<Subjects>,
    caller: Caller,
    Path((project_id, id)): Path<(String, String)>,
) -> Result<Json<Subject>, Problem> {
    let request = GetSubjectRequest { project_id, id };
    let subject = subjects.get_subject(caller.call(request)).await?;
    Ok(Json(subject.into_inner()))
}

/// Adds a subject to a project.
#[utoipa::path(
    post, path = "/api/projects/{projectId}/subjects", operation_id = "create_subject",
    tag = "Subjects", request_body = SubjectInput,
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.SubjectService/CreateSubject"))),
    responses((status = CREATED, description = "The new subject", body = SubjectEntry)),
)]
async fn create(
    State(mut subjects): State<Subjects>,
    caller: Caller,
    Path(project_id): Path<String>,
    Body(input): Body<SubjectInput>,
) -> Result<Created<Json<SubjectEntry>>, Problem> {
    let subjects_of_project = format!("/api/projects/{project_id}/subjects");
    let request = CreateSubjectRequest { project_id, subject: Some(input) };
    let subject = subjects.create_subject(caller.call(request)).await?.into_inner();
    Ok(Created(format!("{subjects_of_project}/{}", subject.id), Json(subject)))
}

/// Changes a subject, or moves it into the archive or out of it.
#[utoipa::path(
    put, path = "/api/projects/{projectId}/subjects/{subjectId}", operation_id = "update_subject",
    tag = "Subjects", request_body = SubjectInput,
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.SubjectService/UpdateSubject"))),
    responses((status = OK, description = "The changed subject", body = Subject)),
)]
async fn update(
    State(mut subjects): State<Subjects>,
    caller: Caller,
    Path((project_id, id)): Path<(String, String)>,
    Update { changes, fields, data_version, .. }: Update<SubjectInput>,
) -> Result<Json<Subject>, Problem> {
    let changes = Some(changes);
    let request = UpdateSubjectRequest { project_id, id, data_version, changes, fields };
    let subject = subjects.update_subject(caller.call(request)).await?;
    Ok(Json(subject.into_inner()))
}

/// Deletes a subject.
///
/// References to it are cleared. Its executions are kept.
#[utoipa::path(
    delete, path = "/api/projects/{projectId}/subjects/{subjectId}",
    operation_id = "delete_subject", tag = "Subjects",
    extensions(("x-grpc-method" = json!("/assay.catalog.v1.SubjectService/DeleteSubject"))),
    responses((status = NO_CONTENT, description = "The subject has been deleted")),
)]
async fn delete(
    State(mut subjects): State<Subjects>,
    caller: Caller,
    Path((project_id, id)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    subjects.delete_subject(caller.call(DeleteSubjectRequest { project_id, id })).await?;
    Ok(StatusCode::NO_CONTENT)
}
