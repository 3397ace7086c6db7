//! `/account`: the API tokens of the user, and the customers that the user can switch to.

mod customer;
mod token;

use axum::{
    Form, Router,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use futures::try_join;
use maud::{Markup, html};

use self::{
    customer::Membership,
    token::{ApiToken, Fields, NewApiToken, TOKENS},
};
use super::part::below_projects;
use crate::{api::Console, claims::Claims, failure::Failure, layout::Page, session::Session};

/// Path of the interface.
const MEMBERSHIPS: &str = "/api/users/current/memberships";

pub(super) fn routes() -> Router<Console> {
    Router::new()
        .route("/account", get(page))
        .route("/account/customer", post(customer::switch))
        .route("/account/tokens", post(create))
        .route("/account/tokens/{token}/delete", post(token::delete))
}

async fn page(session: Session) -> Result<Response, Failure> {
    show(&session, None).await.map(IntoResponse::into_response)
}

/// Creates an API token, and shows its secret once.
async fn create(session: Session, Form(fields): Form<Fields>) -> Result<Response, Failure> {
    let new = token::create(&session.api, fields).await?;
    show(&session, Some(&new)).await.map(IntoResponse::into_response)
}

/// Shows the page, with the secret of a new token.
async fn show<'a>(
    Session { api, user }: &'a Session,
    new: Option<&NewApiToken>,
) -> Result<Page<'a>, Failure> {
    let first = [("limit", 100)];
    let (tokens, memberships) = try_join!(
        api.list::<ApiToken>(TOKENS, &first),
        api.list::<Membership>(MEMBERSHIPS, &first),
    )?;
    let body = html! {
        div.head { h1 { "Account" } }
        (customers(&memberships.items))
        section aria-labelledby="tokens" {
            h2 #tokens { "API tokens" }
            p.hint { "CI jobs and other programs send an API token instead of a password." }
            @if let Some(new) = new { (token::secret(new)) }
            ul.rows { @for token in &tokens.items { (token::row(token)) } }
            (form(user))
        }
    };
    let title = "Account".to_owned();
    Ok(Page { user, title, trail: below_projects(), refresh: None, body })
}

fn customers(memberships: &[Membership]) -> Markup {
    html! {
        @if memberships.len() > 1 {
            section aria-labelledby="customers" {
                h2 #customers { "Customers" }
                ul.rows { @for membership in memberships { (customer::row(membership)) } }
            }
        }
    }
}

/// The form of a new token.
fn form(user: &Claims) -> Markup {
    let uploads = ["Read", "Write", "Execute"];
    html! {
        form.filters method="post" action="/account/tokens" {
            label.field.wide { span { "Name" } input name="name" required maxlength="255"; }
            label.field {
                span { "Permissions" }
                select name="permissions" {
                    @if uploads.iter().all(|permission| user.may(permission)) {
                        option value=(uploads.join(", ")) { "Upload results" }
                    }
                    option value="Read" { "Read" }
                }
            }
            label.field { span { "Expires (optional)" } input type="date" name="expires"; }
            button.primary { "Create" }
        }
    }
}
