//! The state of a test, which is muted or skipped until a day, or enabled, and the form that sets it.

use std::fmt::Display;

use http::Method;
use maud::{Markup, html};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::part::{facts, ticket};
use crate::{
    api::Api,
    claims::Claims,
    failure::Failure,
    record::Time,
    text::{clean, end_of_day, plain, time_before},
};

/// The state of a test case.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct CaseState {
    pub(super) test_case_id: String,
    pub(super) test_case_name: Option<String>,
    state: String,
    until: Option<Time>,
    ticket: String,
    reason: String,
    owner: String,
}

/// The fields of the form.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Entry {
    state: String,
    until: String,
    until_offset: Option<String>,
    ticket: String,
    reason: String,
    /// The reason why it was refused.
    #[serde(skip)]
    problem: Option<String>,
}

/// The request to the interface.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Change<'a> {
    state: &'a str,
    until: Option<String>,
    ticket: &'a str,
    reason: &'a str,
    /// The user.
    owner: &'a str,
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
        if until.is_none() && self.state != "Enabled" {
            self.problem = Some("Enter the last day as yyyy-mm-dd.".to_owned());
            return Ok(Some(self));
        }
        let Self { state, ticket, reason, .. } = &self;
        let until = until.map(|until| until.to_rfc3339());
        let change = Change { state, until, ticket, reason, owner: "" };
        match api.send::<CaseState>(Method::PUT, &path(project, case), &change).await {
            Ok(_) => Ok(None),
            Err(failure) => {
                self.problem = Some(failure.of_input()?);
                Ok(Some(self))
            }
        }
    }
}

/// The state of a test case, unless it is enabled, and the form that sets it.
pub(super) fn shown(case: &CaseState, user: &Claims, entry: &Entry) -> Markup {
    let is_enabled = case.state == "Enabled";
    let path = format!("/cases/{}/state", case.test_case_id);
    html! {
        @if !is_enabled {
            p.review { (summary(case)) }
        }
        @if user.may("Accept") {
            @if !is_enabled {
                form.time method="post" action=(path) {
                    button name="state" value="Enabled" { "Enable this test" }
                }
            }
            details open[entry.problem.is_some()] {
                summary { @if is_enabled { "Mute or skip this test" } @else { "Change" } }
                (form(&path, case, entry))
            }
        }
    }
}

/// The state, its end and its reason.
pub(super) fn summary(case: &CaseState) -> Markup {
    html! {
        b { (case.state) }
        span.facts {
            @if let Some(until) = case.until { span.fact { "until " (time_before(until)) } }
            (facts([Some(case.owner.as_str()), Some(case.reason.as_str())]))
        }
        @if !case.ticket.is_empty() { (ticket(&case.ticket)) }
    }
}

fn form(path: &str, case: &CaseState, entry: &Entry) -> Markup {
    let given = |typed: &str, stored: &str| {
        clean(if entry.problem.is_some() { typed } else { stored }).into_owned()
    };
    html! {
        form.review-form aria-label="State" method="post" action=(path) {
            @if let Some(problem) = &entry.problem { p.alert role="alert" { (plain(problem)) } }
            label.field {
                span { "Until and including, at most 90 days" span.utc { " (UTC)" } }
                input type="date" name="until" required value=[Some(&entry.until).filter(|day| !day.is_empty())]
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
                button name="state" value="Muted" { "Mute" }
                button name="state" value="Skipped" { "Skip" }
            }
            p.hint { "A muted test runs, and its failures do not count. Engines leave out a skipped test." }
        }
    }
}
