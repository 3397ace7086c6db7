//! `/projects/{projectId}/knownfailures`: the causes that are muted, until they are ended.

mod action;

use axum::{
    Router,
    extract::{Path, Query},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use futures::try_join;
use maud::{Markup, html};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{
    case_state::{self, CaseState},
    paged::{Paged, unless_empty},
    part::{below_project, ticket},
};
use crate::{
    api::{Console, List, address},
    claims::Claims,
    failure::Failure,
    layout::Page,
    record::{Permission, Project, Time},
    session::Session,
    text::{ansi, beginning, clean, counted, plain, short_time, time_before},
};

/// Number of known failures on a page.
const KNOWN_FAILURES: u32 = 50;

/// Number of muted and skipped tests on a page.
const STATES: u32 = 100;

pub(super) fn routes() -> Router<Console> {
    Router::new()
        .route("/projects/{project}/knownfailures", get(page))
        .route("/projects/{project}/knownfailures/end", post(action::end))
        .route("/projects/{project}/knownfailures/restore", post(action::restore))
}

/// The part of the second list of the page that is shown, beside that of the first.
#[derive(Clone, Default, Deserialize, Serialize)]
#[serde(default)]
struct Part {
    /// Cursor of the muted and skipped tests.
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    tests: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct KnownFailure {
    id: String,
    fingerprint: String,
    headline: String,
    test_case_id: Option<String>,
    test_case_name: Option<String>,
    ticket: String,
    comment: String,
    muted_until: Time,
    created_by: String,
    last_seen: Option<Time>,
}

impl KnownFailure {
    /// Returns whether both mute the same cause in the same way, of different tests.
    fn is_like(&self, other: &Self) -> bool {
        let of = |known: &Self| {
            let Self { fingerprint, ticket, comment, muted_until, created_by, .. } = known;
            let texts = [fingerprint, ticket, comment, created_by].map(Clone::clone);
            (texts, *muted_until, known.test_case_id.is_none())
        };
        of(self) == of(other)
    }
}

async fn page(
    session: Session,
    Path(id): Path<Uuid>,
    Query(query): Query<Paged<Part>>,
) -> Result<Response, Failure> {
    show(&session, id, &query, &html! {}).await
}

async fn show(
    Session { api, user }: &Session,
    id: Uuid,
    query: &Paged<Part>,
    announcement: &Markup,
) -> Result<Response, Failure> {
    let project = format!("/api/projects/{id}");
    let part = |cursor: &Option<String>| Paged { filter: (), cursor: cursor.clone() };
    let (of_known, of_states) = (part(&query.cursor), part(&query.filter.tests));
    let (of_known, of_states) = (of_known.listed(KNOWN_FAILURES), of_states.listed(STATES));
    let (known, states) = (format!("{project}/knownfailures"), format!("{project}/testcasestates"));
    let (project, known, states) = try_join!(
        api.get::<Project>(&project, &()),
        api.list::<KnownFailure>(&known, &of_known),
        api.list::<CaseState>(&states, &of_states),
    )?;
    let path = format!("/projects/{id}/knownfailures");
    let body = html! {
        div.head { h1 { "Known failures" } }
        (announcement)
        p.lead {
            "Failures with these causes are muted until the date: they do not count as new. Review \
             failures of an execution to add some."
        }
        @if known.items.is_empty() { (query.nothing("No failure is muted.")) }
        ul.rows.spaced { @for alike in known.items.chunk_by(KnownFailure::is_like) {
            (row(&path, alike, user, &project))
        } }
        (query.pager(&path, known.next.as_deref()))
        (tests(&path, query, &states, &project))
    };
    let title = format!("Known failures · {}", project.name);
    let trail = below_project(&project);
    Ok(Page { user, title, trail, body }.into_response())
}

/// The tests that are muted or skipped, whatever their causes.
fn tests(path: &str, query: &Paged<Part>, states: &List<CaseState>, project: &Project) -> Markup {
    let is_later_part = query.filter.tests.is_some();
    let at = |tests: Option<String>| {
        let query = Paged { filter: Part { tests }, cursor: query.cursor.clone() };
        format!("{}#tests", address(path, &query))
    };
    html! {
        @if is_later_part || !states.items.is_empty() {
            h2 #tests { "Muted and skipped tests" }
            ul.rows.spaced { @for state in &states.items {
                li.row.past {
                    span.mark {}
                    div.what {
                        a href=(format!("/cases/{}", state.test_case_id)) {
                            bdi { (plain(state.test_case_name.as_deref().unwrap_or("one test"))) }
                        }
                        p.small { (case_state::summary(state, project)) }
                    }
                }
            } }
            @if is_later_part || states.next.is_some() {
                nav.pager aria-label="Pages of tests" {
                    @if is_later_part { a.button href=(at(None)) { "« First tests" } }
                    @if states.next.is_some() { a.button href=(at(states.next.clone())) { "Next tests »" } }
                }
            }
        }
    }
}

/// Known failures of one cause as a row.
fn row(path: &str, alike: &[KnownFailure], user: &Claims, project: &Project) -> Markup {
    let [known, ..] = alike else { return html! {} };
    let seen = alike.iter().filter_map(|known| known.last_seen).max();
    html! {
        li.row.past {
            span.mark {}
            div.what {
                pre { (ansi(&known.headline)) }
                @if !known.comment.is_empty() { p.small { bdi { (plain(&beginning(&known.comment))) } } }
                span.facts {
                    span.fact { "until " (time_before(known.muted_until)) }
                    @if known.test_case_id.is_none() { span.fact { "every test" } }
                    @else if let [known] = alike { span.fact { (case(known)) } }
                    span.fact { "by " bdi { (plain(&known.created_by)) } }
                    @if let Some(time) = seen { span.fact { "last seen " (short_time(time)) } }
                }
                @if alike.len() > 1 {
                    details {
                        summary { (count(alike.len(), "test")) }
                        ul { @for known in alike { li { (case(known)) } } }
                    }
                }
            }
            span.marks { (ticket(&known.ticket, project)) }
            @if user.may(Permission::Accept) {
                form.time method="post" action=(format!("{path}/end")) {
                    @for known in alike { input type="hidden" name="known" value=(known.id); }
                    button aria-label=(name_of(alike)) { "End" }
                }
            }
        }
    }
}

fn case(known: &KnownFailure) -> Markup {
    let name = known.test_case_name.as_deref().unwrap_or("one test");
    html! {
        @if let Some(case) = &known.test_case_id {
            a href=(format!("/cases/{case}")) { bdi { (plain(name)) } }
        }
    }
}

/// Returns the name of the button that ends known failures.
fn name_of(alike: &[KnownFailure]) -> String {
    let headline = alike.first().map(|known| known.headline.as_str()).unwrap_or_default();
    let of = match alike {
        [one] => one.test_case_name.clone().unwrap_or_else(|| "every test".to_owned()),
        several => count(several.len(), "test"),
    };
    format!("End for {}: {}", clean(&of), clean(headline))
}

fn count(count: usize, noun: &str) -> String {
    counted(i64::try_from(count).unwrap_or(i64::MAX), noun)
}
