//! `/api/management/audit`.

use assay_auth::Caller;
use assay_proto::{
    Timestamp,
    identity::{AuditEntry, ListAuditEntriesRequest},
};
use axum::extract::State;
use serde::{
    Deserialize,
    de::{IntoDeserializer, value::Error},
};
use utoipa::IntoParams;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    list::{List, Listing},
    problem::Problem,
    query::Query,
    services::{AuditEntries, Services},
};

pub(super) fn routes() -> OpenApiRouter<Services> {
    OpenApiRouter::new().routes(routes!(list))
}

/// The entries to list; all by default.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
struct Filter {
    /// Return only entries from this time on.
    #[param(value_type = Option<String>, format = DateTime)]
    from: Option<String>,
    /// Return only entries before this time.
    #[param(value_type = Option<String>, format = DateTime)]
    to: Option<String>,
    /// Return only actions of this user.
    #[param(value_type = Option<String>, format = Uuid)]
    user_id: Option<String>,
    /// Return only this action, such as `LoginRefused`.
    #[param(example = "LoginRefused")]
    action: Option<String>,
}

/// Lists the audit log of the caller's customer, newest first.
#[utoipa::path(
    get, path = "/api/management/audit", operation_id = "list_audit_entries", tag = "Audit",
    params(Filter, Listing),
    extensions(("x-grpc-method" = json!("/assay.identity.v1.AuditService/ListAuditEntries"))),
    responses((status = OK, description = "The entries", body = [AuditEntry])),
)]
async fn list(
    State(mut audit): State<AuditEntries>,
    caller: Caller,
    Query(filter): Query<Filter>,
    listing: Listing,
) -> Result<List, Problem> {
    let request = ListAuditEntriesRequest {
        from: time("from", filter.from)?,
        to: time("to", filter.to)?,
        user_id: filter.user_id,
        action: filter.action,
        page: Some(listing.page()),
    };
    listing.respond(audit.list_audit_entries(caller.call(request)).await?).await
}

fn time(name: &str, text: Option<String>) -> Result<Option<Timestamp>, Problem> {
    let read = |text: String| {
        let time = Timestamp::deserialize(IntoDeserializer::<Error>::into_deserializer(text));
        time.map_err(|_| {
            Problem::invalid(name, "must be an RFC 3339 time, such as 2026-11-20T23:34:00Z")
        })
    };
    text.map(read).transpose()
}
