//! `user`: the user of a token, with which older JavaScript agents check their connection.

use assay_auth::Caller;
use axum::{Json, extract::State};
use serde_json::{Value, json};

use crate::{problem::Problem, services::Users};

pub(super) async fn current(
    State(mut users): State<Users>,
    caller: Caller,
) -> Result<Json<Value>, Problem> {
    let user = users.get_current_user(caller.call(())).await?.into_inner();
    Ok(Json(json!({
        "userId": user.id, "email": user.email, "fullName": user.display_name,
        "accountType": "INTERNAL", "userRole": "USER", "active": true, "assignedProjects": {},
    })))
}
