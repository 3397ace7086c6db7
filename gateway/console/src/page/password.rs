//! `/forgot-password`: requests a mail with a link that sets a new password.

use axum::{
    Form, Router,
    extract::State,
    response::{IntoResponse, Response},
    routing::get,
};
use http::{Method, StatusCode, header::ORIGIN, request::Parts};
use maud::{Markup, html};
use serde::{Deserialize, Serialize};

use crate::{
    api::{Api, Console},
    failure::{Failure, Problem},
    layout,
    text::{clean, plain},
};

/// Title of the page.
const TITLE: &str = "Forgot your password?";

pub(super) fn routes() -> Router<Console> {
    Router::new().route("/forgot-password", get(form).post(request))
}

/// The form of the page.
#[derive(Deserialize)]
struct Account {
    email: String,
}

/// The request to the interface.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct PasswordReset<'a> {
    user_email: &'a str,
    /// Origin of the link.
    host: &'a str,
}

async fn form() -> Response {
    layout::bare(StatusCode::OK, TITLE, &fields("", None))
}

/// Requests the mail. The page does not reveal whether the account exists.
async fn request(
    State(console): State<Console>,
    parts: Parts,
    Form(Account { email }): Form<Account>,
) -> Result<Response, Failure> {
    let origin = parts.headers.get(ORIGIN).and_then(|origin| origin.to_str().ok());
    let reset = PasswordReset { user_email: email.trim(), host: origin.unwrap_or_default() };
    let api = Api::new(&console, &parts, None);
    match api.send::<serde_json::Value>(Method::PUT, "/api/users/reset/prepare", &reset).await {
        Ok(_) => Ok(layout::bare(StatusCode::OK, "Look at your mails", &sent(email.trim()))),
        Err(Failure::Refused(Problem { status, detail, .. })) => {
            Ok(layout::bare(status, TITLE, &fields(&email, Some(&detail))))
        }
        Err(failure) => Ok(failure.into_response()),
    }
}

fn fields(email: &str, reason: Option<&str>) -> Markup {
    html! {
        form.login method="post" action="/forgot-password" {
            @if let Some(reason) = reason { p.alert role="alert" { (plain(reason)) } }
            label for="email" { "Email" }
            input #email name="email" type="email" autocomplete="username" required value=(clean(email)) autofocus;
            button.primary { "Send a link to choose a new one" }
            p.hint { a href="/login" { "Back to the login" } }
        }
    }
}

fn sent(email: &str) -> Markup {
    html! {
        p {
            "If there is an account for " b { bdi { (plain(email)) } } ", a mail with a link is on its way. The link \
             works once, for an hour."
        }
        p { a href="/login" { "Back to the login" } }
    }
}
