//! `/login` and `/logout`.

use axum::{
    Form, Router,
    extract::{Query, State},
    response::{IntoResponse, Redirect, Response},
    routing::{get, post},
};
use http::{HeaderMap, Method, StatusCode, request::Parts};
use maud::{Markup, html};
use serde::{Deserialize, Serialize};

use crate::{
    api::{Api, Console},
    failure::{Failure, Problem},
    layout,
    session::{Next, Session, Token, forget},
    text::{clean, plain},
};

pub(super) fn routes() -> Router<Console> {
    Router::new().route("/login", get(form).post(login)).route("/logout", post(logout))
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Target {
    next: String,
    /// Any text if a form was sent after the end of the session.
    ended: Option<String>,
}

/// Said to users whose form was not accepted.
const ENDED: &str =
    "Your session has ended, so what you sent is not saved. Log in to send it again.";

/// The form of the page.
#[derive(Deserialize)]
struct Credentials {
    email: String,
    password: String,
    #[serde(default)]
    next: String,
}

/// The request to the interface.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Login<'a> {
    email: &'a str,
    password: &'a str,
}

/// Shows the form, or the next page to users who are logged in.
async fn form(session: Result<Session, Failure>, Query(target): Query<Target>) -> Response {
    let next = Next::parse(&target.next);
    match session {
        Ok(session) if session.is_valid().await => Redirect::to(next.as_str()).into_response(),
        _ => {
            let reason = target.ended.is_some().then_some(ENDED);
            layout::bare(StatusCode::OK, "Log in", &fields("", &next, reason))
        }
    }
}

impl Session {
    async fn is_valid(&self) -> bool {
        self.api.get::<serde_json::Value>("/api/users/current", &()).await.is_ok()
    }
}

async fn login(
    State(console): State<Console>,
    parts: Parts,
    Form(Credentials { email, password, next }): Form<Credentials>,
) -> Result<Response, Failure> {
    let (api, next) = (Api::new(&console, &parts, None), Next::parse(&next));
    let login = Login { email: email.trim(), password: &password };
    match api.send::<Token>(Method::POST, "/api/token/login", &login).await {
        Ok(token) => token.store(Redirect::to(next.as_str()).into_response(), &parts.headers),
        Err(failure) => Ok(rejected(failure, &email, &next)),
    }
}

/// Shows the form again, with the reason.
fn rejected(failure: Failure, email: &str, next: &Next) -> Response {
    let (status, reason) = match failure {
        Failure::Unauthenticated => {
            (StatusCode::UNPROCESSABLE_ENTITY, "The email or the password is not correct.".into())
        }
        Failure::Refused(Problem { status, detail, .. }) => (status, detail),
    };
    layout::bare(status, "Log in", &fields(email, next, Some(&reason)))
}

fn fields(email: &str, next: &Next, reason: Option<&str>) -> Markup {
    html! {
        form.login method="post" action="/login" {
            @if let Some(reason) = reason { p.alert role="alert" { (plain(reason)) } }
            input type="hidden" name="next" value=(next.as_str());
            label for="email" { "Email" }
            input #email name="email" type="email" autocomplete="username" required value=(clean(email))
                autofocus[email.is_empty()];
            label for="password" { "Password" }
            input #password name="password" type="password" autocomplete="current-password" required
                autofocus[!email.is_empty()];
            button.primary { "Log in" }
            p.hint { a href="/forgot-password" { "Forgot your password?" } }
        }
    }
}

/// Ends the session, and forgets it even if the interface cannot be reached.
async fn logout(session: Result<Session, Failure>, headers: HeaderMap) -> Response {
    if let Ok(Session { api, .. }) = session
        && let Err(Failure::Refused(problem)) = api.post("/api/token/logout").await
    {
        tracing::warn!(problem = problem.detail, "the session was not ended");
    }
    let mut response = Redirect::to("/login").into_response();
    forget(&mut response, &headers);
    response
}
