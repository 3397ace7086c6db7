//! The state of a test, which is muted or skipped until a day, or enabled, and the form that sets it.

use std::fmt::Display;

use http::{Method, StatusCode};
use maud::{Markup, html};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{
    part::{facts, ticket},
    version::Version,
};
use crate::{
    api::Api,
    claims::Claims,
    failure::Failure,
    record::{Permission, Project, State, Time},
    text::{clean, end_of_day, plain, time_before},
};

/// The state of a test case.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct CaseState {
    pub(super) test_case_id: String,
    pub(super) test_case_name: Option<String>,
    state: State,
    until: Option<Time>,
    ticket: String,
    reason: String,
    owner: String,
    data_version: String,
}

/// The fields of the form.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Entry {
    state: State,
    until: String,
    until_offset: Option<String>,
    ticket: String,
    reason: String,
    #[serde(flatten)]
    version: Version,
    /// The reason why it was refused.
    #[serde(skip)]
    refusal: Option<Refusal>,
}

/// Why a change of a state was refused.
enum Refusal {
    /// The reason, in words.
    Problem(String),
    /// Somebody else has changed the state since the page was shown.
    Stale,
}

/// The request to the interface.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Change<'a> {
    state: &'static str,
    until: Option<String>,
    ticket: &'a str,
    reason: &'a str,
    /// The user.
    owner: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    data_version: Option<&'a str>,
}

/// Returns the path of the state of a test case in the interface.
pub(super) fn path(project: &str, case: impl Display) -> String {
    format!("/api/projects/{project}/testcases/{case}/state")
}

impl Entry {
    /// Sets the state. Returns the entry with the reason if it is refused.
    pub(super) async fn send(
        mut self,
        api: &Api,
        project: &str,
        case: Uuid,
    ) -> Result<Option<Self>, Failure> {
        let until = end_of_day(&self.until, self.until_offset.as_deref());
        if until.is_none() && self.state != State::Enabled {
            let problem = "Enter the last day as yyyy-mm-dd.".to_owned();
            self.refusal = Some(Refusal::Problem(problem));
            return Ok(Some(self));
        }
        let Self { state, ticket, reason, .. } = &self;
        let until = until.map(|until| until.to_rfc3339());
        let (state, data_version) = (state.name(), self.version.base());
        let change = Change { state, until, ticket, reason, owner: "", data_version };
        match api.send::<CaseState>(Method::PUT, &path(project, case), &change).await {
            Ok(_) => Ok(None),
            Err(failure) if failure.is_stale() => {
                self.refusal = Some(Refusal::Stale);
                Ok(Some(self))
            }
            Err(failure) => {
                self.refusal = Some(Refusal::Problem(failure.of_input()?));
                Ok(Some(self))
            }
        }
    }

    /// Returns the status of the page that shows a refused change.
    pub(super) fn status(&self) -> StatusCode {
        match self.refusal {
            Some(Refusal::Stale) => StatusCode::CONFLICT,
            _ => StatusCode::UNPROCESSABLE_ENTITY,
        }
    }

    /// Returns whether a change was refused that enables the test, or one that does not.
    fn is_refused(&self, enables: bool) -> bool {
        self.refusal.is_some() && (self.state == State::Enabled) == enables
    }

    /// Returns the version for a form, that of the change if it was refused.
    fn version(&self, case: &CaseState, is_refused: bool) -> Version {
        if is_refused { self.version.clone() } else { Version::of(&case.data_version) }
    }
}

/// The state of a test case, unless it is enabled, and the forms that set it, which are sent to `path`.
pub(super) fn shown(
    case: &CaseState,
    user: &Claims,
    entry: &Entry,
    path: &str,
    project: &Project,
) -> Markup {
    let is_enabled = case.state == State::Enabled;
    html! {
        @if !is_enabled {
            p.review { (summary(case, project)) }
        }
        @if user.may(Permission::Accept) {
            @if !is_enabled { (enabling(path, case, entry)) }
            @else if entry.is_refused(true) {
                p.alert role="alert" { "Somebody else has enabled this test since this page was shown." }
            }
            details open[entry.is_refused(false)] {
                summary { @if is_enabled { "Mute or skip this test" } @else { "Change" } }
                (form(path, case, entry))
            }
        }
    }
}

/// The state, its end and its reason.
pub(super) fn summary(case: &CaseState, project: &Project) -> Markup {
    html! {
        b { (case.state) }
        span.facts {
            @if let Some(until) = case.until { span.fact { "until " (time_before(until)) } }
            (facts([Some(case.owner.as_str()), Some(case.reason.as_str())]))
        }
        (ticket(&case.ticket, project))
    }
}

/// The form that enables a test.
fn enabling(path: &str, case: &CaseState, entry: &Entry) -> Markup {
    let is_refused = entry.is_refused(true);
    html! {
        form.time aria-label="Enable this test" method="post" action=(path) {
            (entry.version(case, is_refused).fields(&case.data_version, "state"))
            button name="state" value=(State::Enabled) { "Enable this test" }
        }
    }
}

fn form(path: &str, case: &CaseState, entry: &Entry) -> Markup {
    let is_refused = entry.is_refused(false);
    let given =
        |typed: &str, stored: &str| clean(if is_refused { typed } else { stored }).into_owned();
    let until = Some(&entry.until).filter(|day| is_refused && !day.is_empty());
    html! {
        form.review-form aria-label="State" method="post" action=(path) {
            @if let Some(Refusal::Problem(problem)) = &entry.refusal { p.alert role="alert" { (plain(problem)) } }
            (entry.version(case, is_refused).fields(&case.data_version, "state"))
            label.field {
                span { "Until and including, at most 90 days" span.utc { " (UTC)" } }
                input type="date" name="until" required value=[until]
                    data-last data-days="90";
            }
            label.field {
                span { "Ticket" }
                input name="ticket" maxlength="255" value=(given(&entry.ticket, &case.ticket));
            }
            label.field.grow {
                span { "Reason" }
                input name="reason" maxlength="1000" value=(given(&entry.reason, &case.reason));
            }
            div.buttons {
                button name="state" value=(State::Muted) { "Mute" }
                button name="state" value=(State::Skipped) { "Skip" }
            }
            p.hint { "A muted test runs, and its failures do not count. Engines leave out a skipped test." }
        }
    }
}
