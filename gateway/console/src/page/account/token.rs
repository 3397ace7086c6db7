//! API tokens of the user.

use axum::{extract::Path, response::Redirect};
use http::Method;
use maud::{Markup, html};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    api::Api,
    failure::Failure,
    page::{paged::unless_empty, upload::copyable},
    record::Time,
    session::Session,
    text::{clean, plain, short_time},
};

/// Path of the interface.
pub(super) const TOKENS: &str = "/api/users/current/tokens";

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ApiToken {
    id: String,
    name: String,
    usage_permission: String,
    expires_at: Option<Time>,
    last_used_at: Option<Time>,
}

/// A new API token with its secret.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct NewApiToken {
    name: String,
    secret: String,
}

/// The fields of the form.
#[derive(Deserialize)]
pub(super) struct Fields {
    name: String,
    permissions: String,
    #[serde(default, deserialize_with = "unless_empty")]
    expires: Option<String>,
}

/// The request to the interface.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct ApiTokenInput<'a> {
    name: &'a str,
    usage_permission: &'a str,
    expires_at: Option<String>,
}

/// Creates a token.
pub(super) async fn create(
    api: &Api,
    Fields { name, permissions, expires }: &Fields,
) -> Result<NewApiToken, Failure> {
    let expires_at = expires.as_ref().map(|day| format!("{day}T00:00:00Z"));
    let input = ApiTokenInput { name, usage_permission: permissions, expires_at };
    api.send(Method::POST, TOKENS, &input).await
}

/// Revokes a token.
pub(super) async fn delete(
    Session { api, .. }: Session,
    Path(id): Path<Uuid>,
) -> Result<Redirect, Failure> {
    api.delete(&format!("{TOKENS}/{id}")).await?;
    Ok(Redirect::to("/account"))
}

pub(super) fn secret(new: &NewApiToken) -> Markup {
    html! {
        div.done role="status" {
            p { "The secret of " b { bdi { (plain(&new.name)) } } " is shown only now:" }
            (copyable(&new.secret))
        }
    }
}

pub(super) fn row(token: &ApiToken) -> Markup {
    html! {
        li.row.past {
            span.mark {}
            span.what {
                b { bdi { (plain(&token.name)) } }
                span.facts {
                    span.fact { (plain(&token.usage_permission)) }
                    span.fact {
                        @match token.last_used_at {
                            Some(time) => { "last used " (short_time(time)) },
                            None => "never used",
                        }
                    }
                    @if let Some(time) = token.expires_at { span.fact { "expires " (short_time(time)) } }
                }
            }
            span.marks {}
            form.time method="post" action=(format!("/account/tokens/{}/delete", token.id)) {
                button aria-label=(format!("Delete {}", clean(&token.name))) { "Delete" }
            }
        }
    }
}
