//! `/executions/{executionId}/triage`: the causes of failures one after the other, each with an example and the
//! last decision about it.

use axum::{
    Form, Router,
    extract::{Path, Query},
    response::{IntoResponse, Redirect, Response},
    routing::get,
};
use futures::try_join;
use maud::{Markup, html};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{
    execution::path,
    part::{below_set, ticket},
    review::{self, Announcement, Entry, Scope, is_judged, reviewer},
    row::place,
};
use crate::{
    api::{Api, Console, address},
    failure::Failure,
    layout::{Crumb, Page},
    record::{Cause, Project, ReportEntry, Summary},
    session::Session,
    text::{ansi, counted, number, plain, short_time},
};

/// Number of causes on the page.
const CAUSES: u32 = 100;

pub(super) fn routes() -> Router<Console> {
    Router::new().route("/executions/{execution}/triage", get(page).post(judge))
}

#[derive(Clone, Default, Deserialize, Serialize)]
#[serde(default)]
struct View {
    /// Fingerprint of the cause; by default the first one with tests to review.
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<String>,
}

/// The query of the failures that are triaged.
#[derive(Serialize)]
struct Failures {
    muted: bool,
    limit: u32,
}

async fn page(
    session: Session,
    Path(id): Path<Uuid>,
    Query(view): Query<View>,
    Query(announcement): Query<Announcement>,
) -> Result<Response, Failure> {
    show(&session, id, &view, &announcement, None).await
}

/// Judges the tests of a cause, and goes on to the next one.
async fn judge(
    session: Session,
    Path(id): Path<Uuid>,
    Query(view): Query<View>,
    Form(pairs): Form<Vec<(String, String)>>,
) -> Result<Response, Failure> {
    let entry = Entry::read(pairs).among(None, Some("false".to_owned()));
    match entry.send(&session.api, &path(id), None).await? {
        Ok(reviewed) => {
            let next = format!("/executions/{id}/triage");
            Ok(Redirect::to(&reviewed.announced_on(&next)).into_response())
        }
        Err(entry) => {
            let refusal = entry.refusal();
            let announcement = Announcement::default();
            let page = show(&session, id, &view, &announcement, Some(entry)).await?;
            Ok((refusal, page).into_response())
        }
    }
}

async fn show(
    Session { api, user }: &Session,
    id: Uuid,
    view: &View,
    announcement: &Announcement,
    refused: Option<Entry>,
) -> Result<Response, Failure> {
    let failures = format!("{}/failures", path(id));
    let query = Failures { muted: false, limit: CAUSES };
    let summary_path = format!("{}/summary", path(id));
    let (summary, causes) =
        try_join!(api.get::<Summary>(&summary_path, &()), api.list::<Cause>(&failures, &query),)?;
    let mut causes = causes.items;
    // Those that are judged sink.
    causes.sort_by_key(|cause| cause.unreviewed == 0);
    let asked = |cause: &&Cause| Some(&cause.fingerprint) == view.cause.as_ref();
    let at = causes.iter().position(|cause| asked(&cause));
    let at = at.unwrap_or_default();
    let project = format!("/api/projects/{}", summary.project_id);
    let current = causes.get(at);
    let (project, before) =
        try_join!(api.get::<Project>(&project, &()), before(api, &summary, current))?;

    let triage = format!("/executions/{id}/triage");
    let of = |cause: &Cause| address(&triage, &View { cause: Some(cause.fingerprint.clone()) });
    let here = current.map_or_else(|| triage.clone(), of);
    let body = html! {
        div.head {
            h1 { "Triage" }
            (progress(&summary))
            nav.walk aria-label="Causes" {
                @if let Some(previous) = at.checked_sub(1).and_then(|at| causes.get(at)) {
                    a.button rel="prev" href=(of(previous)) { "‹ Previous" }
                }
                a.button rel="up" href=(format!("/executions/{id}")) { "Execution" }
                @if let Some(next) = causes.get(at + 1) {
                    a.button rel="next" href=(of(next)) { "Next ›" }
                }
            }
        }
        (announcement.show(&id.to_string(), &here))
        @match current {
            Some(cause) => div.triage {
                nav aria-label="All causes" {
                    ol { @for (index, one) in causes.iter().enumerate() {
                        (entry_of(one, &of(one), index == at))
                    } }
                }
                div {
                    (example(cause, id))
                    (decision(before.as_ref()))
                    @let entry = refused.unwrap_or_else(|| Entry::like(before.as_ref()));
                    (review::form(user, &here, Scope::Whole(cause), &entry))
                }
            },
            None => p.empty { "No failure needs a review." },
        }
    };
    let execution = &summary.execution;
    let mut trail = below_set(&project, &execution.test_set_id, &execution.test_set_name);
    trail.push(Crumb(format!("/executions/{id}"), short_time(execution.request_time)));
    let title = format!("Triage · {}", execution.test_set_name);
    Ok(Page { user, title, trail, body }.into_response())
}

/// Returns a test that failed with the cause in the execution before, with the decision about it.
async fn before(
    api: &Api,
    summary: &Summary,
    cause: Option<&Cause>,
) -> Result<Option<ReportEntry>, Failure> {
    let (Some(before), Some(cause)) = (&summary.compared_with, cause) else { return Ok(None) };
    let reports = format!("{}/reports", path(before));
    let query = [("fingerprint", cause.fingerprint.as_str()), ("limit", "50")];
    let reports = api.list::<ReportEntry>(&reports, &query).await?.items;
    Ok(reports.into_iter().find(|report| is_judged(&report.status)))
}

fn progress(summary: &Summary) -> Markup {
    let (left, muted) = (summary.changes.unreviewed, summary.changes.muted);
    let failing = summary.execution.statistic.failures() - muted;
    html! {
        span.dim #left {
            @if left == 0 { "All " (counted(failing, "failure")) " are judged" }
            @else { (number(left)) " of " (number(failing)) " left" }
        }
    }
}

/// A cause in the list of all.
fn entry_of(cause: &Cause, href: &str, is_current: bool) -> Markup {
    let headline = cause.headline.lines().next().unwrap_or_default();
    html! {
        li.judged[cause.unreviewed == 0] {
            a href=(href) aria-current=[is_current.then_some("page")] {
                b { (number(cause.count)) } " "
                @if headline.is_empty() { "Without a message" } @else { bdi { (plain(headline)) } }
                @if cause.unreviewed == 0 { span.small { " judged" } }
                @else if cause.unreviewed < cause.count {
                    span.small { " " (number(cause.unreviewed)) " left" }
                }
            }
        }
    }
}

/// The message of a cause, and its first tests.
fn example(cause: &Cause, execution: Uuid) -> Markup {
    let list = format!("/executions/{execution}?fingerprint={}", cause.fingerprint);
    let from = format!("fingerprint={}", cause.fingerprint);
    html! {
        h2 { (counted(cause.count, "test")) " with one cause" }
        @if !cause.headline.is_empty() { pre.headline.alone { (ansi(&cause.headline)) } }
        ul.examples { @for report in &cause.reports {
            li {
                a href=(address(&format!("/reports/{}", report.id), &[("from", &from)])) {
                    bdi { (plain(&report.test_case_name)) }
                }
                " " (place(&report.test_case_identifier, &report.test_case_name))
                @if !report.change_reason.is_empty() { " " span.small { (plain(&report.change_reason)) } }
            }
        } }
        p.more { a href=(list) { "All tests with this cause" } }
    }
}

/// The last decision about a cause, which the form begins with.
fn decision(before: Option<&ReportEntry>) -> Markup {
    html! {
        @if let Some(report) = before {
            p.review {
                "In the run before: " b { (report.status) } (reviewer(&report.review)) " "
                @if !report.ticket.is_empty() { (ticket(&report.ticket)) " " }
                bdi { (plain(report.comment.as_deref().unwrap_or_default())) }
            }
        }
    }
}
