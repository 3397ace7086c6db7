//! `/executions/{executionId}/triage`: the causes of failures one after the other, each with an example and the
//! last decision about it.

mod cause;
mod left;

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

use self::left::{missing, nothing, progress};
use super::{
    execution::path,
    paged::{Paged, unless_empty},
    part::below_set,
    review::{self, Announcement, Entry, Scope},
};
use crate::{
    api::{Api, Console, List, address},
    failure::Failure,
    layout::{Crumb, Page},
    record::{Cause, Project, ReportEntry, Summary},
    session::Session,
    text::{plain, short_time},
};

/// Number of causes on a page.
const CAUSES: u32 = 100;

pub(super) fn routes() -> Router<Console> {
    Router::new().route("/executions/{execution}/triage", get(page).post(judge))
}

/// The causes that are listed: by default those with tests to review.
#[derive(Clone, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
struct Filter {
    /// Any text for the judged ones too.
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    all: Option<String>,
}

impl Filter {
    fn all() -> Self {
        Self { all: Some("yes".to_owned()) }
    }

    /// Returns the tests of a cause that are judged on its page. Those that are judged already are judged again only if
    /// the list has judged causes.
    fn scope<'a>(&self, cause: &'a Cause) -> Scope<'a> {
        if self.all.is_some() { Scope::Whole(cause) } else { Scope::Unreviewed(cause) }
    }
}

#[derive(Deserialize)]
struct View {
    /// Fingerprint of the cause; by default the first one of the list.
    #[serde(default, deserialize_with = "unless_empty")]
    cause: Option<String>,
    /// Fingerprint of the cause whose judgement is announced.
    #[serde(default, deserialize_with = "unless_empty")]
    judged: Option<String>,
}

/// The address of a cause in a list.
#[derive(Serialize)]
struct At<'a> {
    cause: &'a str,
    #[serde(flatten)]
    list: &'a Paged<Filter>,
}

/// The address of a list after the judgement of a cause.
#[derive(Serialize)]
struct After<'a> {
    #[serde(flatten)]
    list: &'a Paged<Filter>,
    #[serde(skip_serializing_if = "Option::is_none")]
    judged: Option<&'a str>,
}

/// The query of the failures that are triaged.
#[derive(Serialize)]
struct Failures<'a> {
    muted: bool,
    unreviewed: bool,
    limit: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<&'a str>,
}

async fn page(
    session: Session,
    Path(id): Path<Uuid>,
    Query(list): Query<Paged<Filter>>,
    Query(view): Query<View>,
    Query(announcement): Query<Announcement>,
) -> Result<Response, Failure> {
    show(&session, id, (list, view), &announcement, None).await
}

/// Judges the tests of a cause, and goes on to the next one.
async fn judge(
    session: Session,
    Path(id): Path<Uuid>,
    Query(list): Query<Paged<Filter>>,
    Query(view): Query<View>,
    Form(pairs): Form<Vec<(String, String)>>,
) -> Result<Response, Failure> {
    let entry = Entry::read(pairs).among(None, Some("false".to_owned()));
    let judged = entry.selected.first().cloned();
    match entry.send(&session.api, &path(id), None).await? {
        Ok(reviewed) => {
            // The causes that are left of the page. A list with the judged ones would begin with them again.
            let left = Paged { filter: Filter::default(), cursor: list.cursor };
            let after = After { list: &left, judged: judged.as_deref() };
            let next = address(&format!("/executions/{id}/triage"), &after);
            Ok(Redirect::to(&reviewed.announced_on(&next)).into_response())
        }
        Err(entry) => {
            let refusal = entry.refusal();
            let announcement = Announcement::default();
            let page = show(&session, id, (list, view), &announcement, Some(entry)).await?;
            Ok((refusal, page).into_response())
        }
    }
}

/// Lists causes. One that is asked for and has no test to review any more is in the list of all.
async fn causes(
    api: &Api,
    id: Uuid,
    mut list: Paged<Filter>,
    asked: Option<&str>,
) -> Result<(Paged<Filter>, List<Cause>), Failure> {
    let failures = format!("{}/failures", path(id));
    loop {
        let unreviewed = list.filter.all.is_none();
        let cursor = list.cursor.as_deref();
        let query = Failures { muted: false, unreviewed, limit: CAUSES, cursor };
        let causes = api.list::<Cause>(&failures, &query).await?;
        if !unreviewed || asked.is_none_or(|asked| is_among(&causes.items, asked)) {
            return Ok((list, causes));
        }
        list.filter = Filter::all();
    }
}

fn is_among(causes: &[Cause], fingerprint: &str) -> bool {
    causes.iter().any(|cause| cause.fingerprint == fingerprint)
}

async fn show(
    Session { api, user }: &Session,
    id: Uuid,
    (list, View { cause: asked, judged }): (Paged<Filter>, View),
    announcement: &Announcement,
    refused: Option<Entry>,
) -> Result<Response, Failure> {
    let summary_path = format!("{}/summary", path(id));
    let (summary, (list, causes)) = try_join!(
        api.get::<Summary>(&summary_path, &()),
        causes(api, id, list, asked.as_deref()),
    )?;
    let List { items: causes, next } = causes;
    let is_asked = |cause: &Cause| Some(&cause.fingerprint) == asked.as_ref();
    let at = causes.iter().position(is_asked).unwrap_or_default();
    let project = format!("/api/projects/{}", summary.project_id);
    let current = causes.get(at);
    let is_missing = asked.is_some() && !current.is_some_and(is_asked);
    let (project, before) =
        try_join!(api.get::<Project>(&project, &()), before(api, &summary, current))?;
    // A judgement that was entered for another cause must not be sent for this one.
    let (refused, discarded) =
        if current.is_some_and(is_asked) { (refused, None) } else { (None, refused) };

    let triage = format!("/executions/{id}/triage");
    let at_cause = |cause: &str| address(&triage, &At { cause, list: &list });
    let of = |cause: &Cause| at_cause(&cause.fingerprint);
    let here = current.map_or_else(|| address(&triage, &list), of);
    // A judgement that is taken back is changed on the page of its own cause.
    let taken_back = judged.as_deref().map_or_else(|| here.clone(), at_cause);
    let previous = at.checked_sub(1).and_then(|at| causes.get(at)).map(of);
    let following = match (causes.get(at + 1), &next) {
        (Some(next), _) => Some(of(next)),
        (None, Some(cursor)) => Some(address(&triage, &list.at(Some(cursor.clone())))),
        (None, None) => None,
    };
    let body = html! {
        div.head {
            h1 { "Triage" }
            (progress(&summary))
            (others(&triage, &list.filter))
            (walk(id, previous.as_deref(), following.as_deref()))
        }
        (announcement.show(&id.to_string(), &taken_back))
        @if let Some(problem) = discarded.and_then(|entry| entry.problem) {
            p.alert role="alert" { "The judgement is not saved, and its cause is not listed any more: " (plain(&problem)) }
        } @else if is_missing { (missing(current)) }
        @match current {
            Some(cause) => div.triage {
                nav aria-label="All causes" {
                    ol { @for (index, one) in causes.iter().enumerate() {
                        (cause::entry(one, &of(one), index == at))
                    } }
                }
                div {
                    (cause::example(cause, id))
                    (cause::decision(before.as_ref(), &project))
                    @let entry = refused.unwrap_or_else(|| Entry::like(before.as_ref()));
                    (review::form(user, &here, list.filter.scope(cause), &entry))
                }
            },
            None => (nothing(&list, &summary)),
        }
        (list.pager(&triage, next.as_deref()))
    };
    let execution = &summary.execution;
    let mut trail = below_set(&project, &execution.test_set_id, &execution.test_set_name);
    trail.push(Crumb(format!("/executions/{id}"), short_time(execution.request_time)));
    let title = format!("Triage · {}", execution.test_set_name);
    Ok(Page { user, title, trail, body }.into_response())
}

/// Links to the causes before and after one, and to the execution.
fn walk(id: Uuid, previous: Option<&str>, following: Option<&str>) -> Markup {
    html! {
        nav.walk aria-label="Causes" {
            @if let Some(previous) = previous { a.button rel="prev" href=(previous) { "‹ Previous" } }
            a.button rel="up" href=(format!("/executions/{id}")) { "Execution" }
            @if let Some(following) = following { a.button rel="next" href=(following) { "Next ›" } }
        }
    }
}

/// Links to the judged causes, or back to those that are left.
fn others(triage: &str, filter: &Filter) -> Markup {
    html! {
        span.aside {
            @if filter.all.is_none() { a href=(address(triage, &Filter::all())) { "Judged causes too" } }
            @else { a href=(triage) { "Only causes to review" } }
        }
    }
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
    Ok(reports.into_iter().find(|report| report.status.is_judged()))
}
