//! `/projects/{projectId}/causes`: the rules for the causes of failures.

use axum::{
    Form, Router,
    extract::{Path, Query},
    response::{IntoResponse, Redirect, Response},
    routing::{get, post},
};
use futures::try_join;
use http::{Method, StatusCode};
use maud::{Markup, html};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{
    paged::{Paged, unless_empty},
    part::{below_project, text_field},
};
use crate::{
    api::Console,
    claims::Claims,
    failure::Failure,
    layout::Page,
    record::{Permission, Project, Time},
    session::Session,
    text::{ansi, beginning, counted, number, plain, short_time},
};

/// Number of rules on a page.
const RULES: u32 = 50;

pub(super) fn routes() -> Router<Console> {
    Router::new()
        .route("/projects/{project}/causes", get(page).post(submit))
        .route("/projects/{project}/causes/{rule}/delete", post(delete))
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct CauseRule {
    id: String,
    pattern: Option<String>,
    headline: Option<String>,
    same_headline: Option<String>,
    comment: String,
    created_by: String,
    created_at: Time,
}

/// A rule to try or to create.
#[derive(Clone, Default, Deserialize, Serialize)]
#[serde(rename_all = "PascalCase", default)]
struct CauseRuleInput {
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    pattern: Option<String>,
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    same_as: Option<String>,
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    comment: Option<String>,
}

/// The form, and the button that has sent it.
#[derive(Deserialize)]
struct Submitted {
    #[serde(flatten)]
    rule: CauseRuleInput,
    #[serde(default)]
    create: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Preview {
    examined: i64,
    remaining: i64,
    joined: Vec<Joined>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Joined {
    causes: Vec<Cause>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Cause {
    headline: String,
    failures: i64,
}

async fn page(
    session: Session,
    Path(id): Path<Uuid>,
    Query(query): Query<Paged<()>>,
) -> Result<Response, Failure> {
    show(&session, id, &query, &CauseRuleInput::default(), &html! {}).await
}

/// Shows what the rule of a form would join, or creates it. A rule that is refused stays in the form.
async fn submit(
    session: Session,
    Path(id): Path<Uuid>,
    Form(Submitted { rule, create }): Form<Submitted>,
) -> Result<Response, Failure> {
    let (api, path) = (&session.api, format!("/api/projects/{id}/causerules"));
    let answer = if create.is_some() {
        let created = api.send::<CauseRule>(Method::POST, &path, &rule).await;
        created.map(|_| None)
    } else {
        api.send::<Preview>(Method::POST, &format!("{path}/preview"), &rule).await.map(Some)
    };
    let (status, answer) = match answer {
        Ok(None) => return Ok(Redirect::to(&format!("/projects/{id}/causes")).into_response()),
        Ok(Some(preview)) => (StatusCode::OK, shown(&preview)),
        Err(failure) => {
            let problem = failure.of_conflict().or_else(Failure::of_input)?;
            let alert = html! { p.alert role="alert" { (plain(&problem)) } };
            (StatusCode::UNPROCESSABLE_ENTITY, alert)
        }
    };
    let page = show(&session, id, &Paged::default(), &rule, &answer).await?;
    Ok((status, page).into_response())
}

async fn delete(
    Session { api, .. }: Session,
    Path((project, rule)): Path<(Uuid, Uuid)>,
) -> Result<Redirect, Failure> {
    api.delete_if_any(&format!("/api/projects/{project}/causerules/{rule}")).await?;
    Ok(Redirect::to(&format!("/projects/{project}/causes")))
}

async fn show(
    Session { api, user }: &Session,
    id: Uuid,
    query: &Paged<()>,
    rule: &CauseRuleInput,
    answer: &Markup,
) -> Result<Response, Failure> {
    let project = format!("/api/projects/{id}");
    let (rules, listed) = (format!("{project}/causerules"), query.listed(RULES));
    let (project, rules) =
        try_join!(api.get::<Project>(&project, &()), api.list::<CauseRule>(&rules, &listed))?;
    let path = format!("/projects/{id}/causes");
    let body = html! {
        div.head { h1 { "Causes" } }
        p.lead {
            "Failures with the same message have the same cause, apart from values that differ between runs. \
             Rules say what else differs: text that does not count, or two causes that are one."
        }
        @if user.may(Permission::Accept) { (form(&path, rule)) }
        (answer)
        @if rules.items.is_empty() { (query.nothing("This project has no rules.")) }
        ul.rows.spaced { @for rule in &rules.items { (row(&path, rule, user)) } }
        (query.pager(&path, rules.next.as_deref()))
    };
    let title = format!("Causes · {}", project.name);
    let trail = below_project(&project);
    Ok(Page { user, title, trail, body }.into_response())
}

/// The forms of both kinds of rules.
fn form(path: &str, rule: &CauseRuleInput) -> Markup {
    let comment = rule.comment.as_deref();
    html! {
        form.filters method="post" action=(path) {
            (text_field("Pattern", "Text that does not count (a regular expression)", rule.pattern.as_deref()))
            (text_field("Comment", "Comment", comment))
            (buttons())
        }
        details open[rule.same_as.is_some()] {
            summary { "Two causes that are one" }
            p.hint { "The address of the tests of a cause has its fingerprint." }
            form.filters method="post" action=(path) {
                (text_field("Fingerprint", "Fingerprint", rule.fingerprint.as_deref()))
                (text_field("SameAs", "Counts as", rule.same_as.as_deref()))
                (text_field("Comment", "Comment", comment))
                (buttons())
            }
        }
    }
}

fn buttons() -> Markup {
    html! {
        button { "Preview" }
        button.primary name="create" value="yes" { "Create" }
    }
}

/// The causes that a rule would join.
fn shown(preview: &Preview) -> Markup {
    let joined = preview.joined.iter().map(|group| group.causes.len().saturating_sub(1));
    let joined = i64::try_from(joined.sum::<usize>()).unwrap_or(i64::MAX);
    html! {
        section aria-labelledby="preview" {
            h2 #preview { "Preview" }
            p role="status" {
                (counted(preview.examined, "cause")) " of the latest executions would be "
                (number(preview.remaining)) "."
            }
            ul.rows.spaced { @for group in &preview.joined { li.row.past {
                span.mark {}
                div.what {
                    p.small { "One cause:" }
                    ul { @for cause in &group.causes { li {
                        pre { (ansi(&cause.headline)) }
                        span.facts { span.fact { (counted(cause.failures, "failure")) } }
                    } } }
                }
            } } }
            @if joined < preview.examined - preview.remaining {
                p.hint { "Only the first groups, and the most frequent causes of each, are shown." }
            }
        }
    }
}

fn row(path: &str, rule: &CauseRule, user: &Claims) -> Markup {
    html! {
        li.row.past {
            span.mark {}
            div.what {
                @if let Some(pattern) = &rule.pattern {
                    code { bdi { (plain(pattern)) } }
                } @else {
                    pre { (ansi(rule.headline.as_deref().unwrap_or_default())) }
                    p.small { "counts as" }
                    pre { (ansi(rule.same_headline.as_deref().unwrap_or_default())) }
                }
                @if !rule.comment.is_empty() { p.small { bdi { (plain(&beginning(&rule.comment))) } } }
                span.facts {
                    span.fact { "by " bdi { (plain(&rule.created_by)) } }
                    span.fact { (short_time(rule.created_at)) }
                }
            }
            span.marks {}
            @if user.may(Permission::Accept) {
                form.time method="post" action=(format!("{path}/{}/delete", rule.id)) {
                    button { "Delete" }
                }
            }
        }
    }
}
