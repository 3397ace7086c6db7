//! Customers that the user is a member of.

use axum::{
    Form,
    extract::Path,
    response::{IntoResponse, Redirect, Response},
};
use http::{HeaderMap, Method};
use maud::{Markup, html};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::MEMBERSHIPS;
use crate::{
    failure::Failure,
    session::{Session, Token},
    text::{clean, plain},
};

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Membership {
    id: String,
    customer_id: String,
    customer_name: String,
    /// None for an invitation.
    user_group_name: Option<String>,
    current: bool,
    pending: bool,
}

/// The field of the form.
#[derive(Deserialize)]
pub(super) struct Choice {
    customer: Uuid,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct RefineInput {
    customer_id: Uuid,
}

/// Exchanges the token of the session for one for another customer.
pub(super) async fn switch(
    Session { api, .. }: Session,
    headers: HeaderMap,
    Form(Choice { customer }): Form<Choice>,
) -> Result<Response, Failure> {
    let choice = RefineInput { customer_id: customer };
    let token = api.send::<Token>(Method::POST, "/api/token/refine", &choice).await?;
    token.store(Redirect::to("/").into_response(), &headers)
}

/// Accepts an invitation.
pub(super) async fn accept(
    Session { api, .. }: Session,
    Path(id): Path<Uuid>,
) -> Result<Redirect, Failure> {
    api.post(&format!("{MEMBERSHIPS}/{id}/accept")).await?;
    Ok(Redirect::to("/account"))
}

pub(super) fn row(membership: &Membership) -> Markup {
    html! {
        li.row.past {
            span.mark {}
            span.what {
                b { bdi { (plain(&membership.customer_name)) } }
                @if let Some(group) = &membership.user_group_name {
                    span.facts { span.fact { bdi { (plain(group)) } } }
                }
            }
            span.marks {
                @if membership.current { span.badge.pass { "current" } }
                @if membership.pending { span.badge.none { "invited" } }
            }
            @if membership.pending {
                form.time method="post" action=(format!("/account/memberships/{}/accept", membership.id)) {
                    button aria-label=(format!("Accept the invitation of {}", clean(&membership.customer_name))) {
                        "Accept"
                    }
                }
            } @else {
                form.time method="post" action="/account/customer" {
                    input type="hidden" name="customer" value=(membership.customer_id);
                    @if !membership.current {
                        button aria-label=(format!("Switch to {}", clean(&membership.customer_name))) { "Switch" }
                    }
                }
            }
        }
    }
}
