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
    text::{clean, plain, short_time, time_before, until},
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

/// The fields of the form, as they were entered.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Fields {
    pub(super) name: String,
    pub(super) permissions: String,
    /// The last day.
    #[serde(deserialize_with = "unless_empty")]
    pub(super) expires: Option<String>,
    /// Minutes by which UTC is ahead at the end of that day, if the browser says so.
    #[serde(deserialize_with = "unless_empty")]
    expires_offset: Option<String>,
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
    Fields { name, permissions, expires, expires_offset }: &Fields,
) -> Result<NewApiToken, Failure> {
    let expires_at = expires.as_ref().map(|day| until(day, expires_offset.as_deref()));
    let input = ApiTokenInput { name, usage_permission: permissions, expires_at };
    api.send(Method::POST, TOKENS, &input).await
}

/// Revokes a token.
pub(super) async fn delete(
    Session { api, .. }: Session,
    Path(id): Path<Uuid>,
) -> Result<Redirect, Failure> {
    api.delete_if_any(&format!("{TOKENS}/{id}")).await?;
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
                    @if let Some(time) = token.expires_at { span.fact { "until " (time_before(time)) } }
                }
            }
            span.marks {}
            form.time method="post" action=(format!("/account/tokens/{}/delete", token.id)) {
                button aria-label=(format!("Delete {}", clean(&token.name))) { "Delete" }
            }
        }
    }
}
