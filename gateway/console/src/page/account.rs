//! `/account`: the API tokens of the user, and the customers that the user can switch to.

mod customer;
mod token;

use axum::{
    Form, Router,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use futures::try_join;
use http::StatusCode;
use maud::{Markup, html};

use self::{
    customer::Membership,
    token::{ApiToken, Fields, TOKENS},
};
use super::part::below_projects;
use crate::{
    api::Console, claims::Claims, failure::Failure, layout::Page, session::Session, text::plain,
};

/// Path of the interface.
const MEMBERSHIPS: &str = "/api/users/current/memberships";

pub(super) fn routes() -> Router<Console> {
    Router::new()
        .route("/account", get(page))
        .route("/account/customer", post(customer::switch))
        .route("/account/memberships/{membership}/accept", post(customer::accept))
        .route("/account/tokens", post(create))
        .route("/account/tokens/{token}/delete", post(token::delete))
}

async fn page(session: Session) -> Result<Response, Failure> {
    show(&session, html! {}).await.map(IntoResponse::into_response)
}

/// Creates an API token, and shows its secret once, or the reason why it is refused.
async fn create(session: Session, Form(fields): Form<Fields>) -> Result<Response, Failure> {
    match token::create(&session.api, &fields).await {
        Ok(new) => Ok(show(&session, html! { (token::secret(&new)) }).await?.into_response()),
        Err(failure) => {
            let notice = html! { p.alert role="alert" { (plain(&failure.of_input()?)) } };
            let page = show(&session, notice).await?;
            Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response())
        }
    }
}

/// Shows the page, with what became of a new token.
async fn show(Session { api, user }: &Session, notice: Markup) -> Result<Page<'_>, Failure> {
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
            (notice)
            ul.rows { @for token in &tokens.items { (token::row(token)) } }
            (form(user))
        }
    };
    let title = "Account".to_owned();
    Ok(Page { user, title, trail: below_projects(), body })
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
