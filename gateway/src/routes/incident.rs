//! `…/incidents`.

use assay_auth::Caller;
use assay_proto::execution::{GetIncidentRequest, Incident, IncidentEntry, ListIncidentsRequest};
use axum::extract::State;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    list::{List, Listing},
    path::Path,
    problem::Problem,
    response::{Json, Resource},
    services::{Incidents, Services},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(get))
}

impl Resource for Incident {}

/// Lists the incidents of a project, newest first.
///
/// An incident is an execution in which nearly all tests failed, or one cause in most test sets within half
/// an hour. It is derived about a second after the execution has completed.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/incidents", operation_id = "list_incidents",
    tag = "Incidents", params(Listing),
    extensions(("x-grpc-method" = json!("/assay.execution.v1.IncidentService/ListIncidents"))),
    responses((status = OK, description = "The incidents", body = [IncidentEntry])),
)]
async fn list(
    State(mut incidents): State<Incidents>,
    caller: Caller,
    Path(project_id): Path<String>,
    listing: Listing,
) -> Result<List, Problem> {
    let request = ListIncidentsRequest { project_id, page: Some(listing.page()) };
    listing.respond(incidents.list_incidents(caller.call(request)).await?).await
}

/// Returns an incident with the executions that it affects.
#[utoipa::path(
    get, path = "/api/projects/{projectId}/incidents/{incidentId}", operation_id = "get_incident",
    tag = "Incidents",
    extensions(("x-grpc-method" = json!("/assay.execution.v1.IncidentService/GetIncident"))),
    responses((status = OK, description = "The incident", body = Incident)),
)]
async fn get(
    State(mut incidents): State<Incidents>,
    caller: Caller,
    Path((project_id, id)): Path<(String, String)>,
) -> Result<Json<Incident>, Problem> {
    let request = GetIncidentRequest { project_id, id };
    Ok(Json(incidents.get_incident(caller.call(request)).await?.into_inner()))
}
