//! `/account`: the API tokens of the user, and the customers that the user can switch to.

mod customer;
mod token;

use axum::{
    Form, Router,
    extract::Query,
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
use super::{
    paged::{Paged, cut},
    part::below_projects,
};
use crate::{
    api::{Console, List},
    claims::Claims,
    failure::Failure,
    layout::Page,
    record::Permission,
    session::Session,
    text::{clean, plain},
};

/// Number of tokens on a page, and of customers.
const LISTED: u32 = 100;

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

async fn page(session: Session, Query(query): Query<Paged<()>>) -> Result<Response, Failure> {
    show(&session, &query, html! {}, &Fields::default()).await.map(IntoResponse::into_response)
}

/// Creates an API token, and shows its secret once. One that is refused stays in the form.
async fn create(session: Session, Form(fields): Form<Fields>) -> Result<Response, Failure> {
    let query = Paged::default();
    match token::create(&session.api, &fields).await {
        Ok(new) => {
            let notice = html! { (token::secret(&new)) };
            Ok(show(&session, &query, notice, &Fields::default()).await?.into_response())
        }
        Err(failure) => {
            let problem = failure.of_conflict().or_else(Failure::of_input)?;
            let notice = html! { p.alert role="alert" { (plain(&problem)) } };
            let page = show(&session, &query, notice, &fields).await?;
            Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response())
        }
    }
}

/// Shows the page, with what became of a new token, and what was entered.
async fn show<'a>(
    Session { api, user }: &'a Session,
    query: &Paged<()>,
    notice: Markup,
    entered: &Fields,
) -> Result<Page<'a>, Failure> {
    let tokens = query.listed(LISTED);
    let (tokens, memberships) = try_join!(
        api.list::<ApiToken>(TOKENS, &tokens),
        api.list::<Membership>(MEMBERSHIPS, &[("limit", LISTED)]),
    )?;
    let body = html! {
        div.head { h1 { "Account" } }
        (customers(&memberships))
        section aria-labelledby="tokens" {
            h2 #tokens { "API tokens" }
            p.hint { "CI jobs and other programs send an API token instead of a password." }
            (notice)
            ul.rows { @for token in &tokens.items { (token::row(token)) } }
            (query.pager("/account", tokens.next.as_deref()))
            (form(user, entered))
        }
    };
    let title = "Account".to_owned();
    Ok(Page { user, title, trail: below_projects(), body })
}

fn customers(memberships: &List<Membership>) -> Markup {
    html! {
        @if memberships.items.len() > 1 {
            section aria-labelledby="customers" {
                h2 #customers { "Customers" }
                ul.rows { @for membership in &memberships.items { (customer::row(membership)) } }
                (cut(memberships, "customer", None))
            }
        }
    }
}

/// The form of a new token.
fn form(user: &Claims, entered: &Fields) -> Markup {
    let uploads = [Permission::Read, Permission::Write, Permission::Execute];
    let of_uploads = uploads.map(Permission::name).join(", ");
    let is_chosen = |permissions: &str| entered.permissions == permissions;
    html! {
        form.filters method="post" action="/account/tokens" {
            label.field.wide {
                span { "Name" }
                input name="name" required maxlength="255" value=(clean(&entered.name));
            }
            label.field {
                span { "Permissions" }
                select name="permissions" {
                    @if uploads.iter().all(|permission| user.may(*permission)) {
                        option value=(of_uploads) selected[is_chosen(&of_uploads)] { "Upload results" }
                    }
                    option value=(Permission::Read) selected[is_chosen(Permission::Read.name())] { "Read" }
                }
            }
            label.field {
                span { "Until and including (optional)" span.utc { " (UTC)" } }
                input type="date" name="expires" value=[entered.expires.as_deref()] data-last;
            }
            button.primary { "Create" }
        }
    }
}
