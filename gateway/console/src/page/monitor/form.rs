//! The form of a monitor.

use http::StatusCode;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::action;
use crate::{
    api::Api,
    failure::Failure,
    page::{
        backtest::{self, number_of},
        paged::unless_empty,
        part::{check_field, number_field, select_field, text_field},
        version::Version,
    },
    record::{AlarmAction, Monitor, MonitorBacktest, MonitorMeasure},
    text::plain,
};

/// The measures and the actions of the interface, and what the form calls them.
const MEASURES: [(MonitorMeasure, &str); 4] = [
    (MonitorMeasure::Recoveries, "times it recovered from at most two failures"),
    (MonitorMeasure::PassOnRetry, "runs that passed only on a retry"),
    (MonitorMeasure::FailureRate, "share of runs that failed, in percent"),
    (MonitorMeasure::Duration, "median duration, in seconds"),
];
const ACTIONS: [(AlarmAction, &str); 3] = [
    (AlarmAction::Mute, "mute: failures do not count"),
    (AlarmAction::Skip, "skip: engines and runners leave it out"),
    (AlarmAction::Notify, "notify"),
];

/// The fields, as they were entered.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Entry {
    name: String,
    measure: String,
    #[serde(deserialize_with = "unless_empty")]
    runs: Option<String>,
    #[serde(deserialize_with = "unless_empty")]
    threshold: Option<String>,
    branch: String,
    action: String,
    #[serde(deserialize_with = "unless_empty")]
    recover_after: Option<String>,
    #[serde(deserialize_with = "unless_empty")]
    dry_run: Option<String>,
    #[serde(flatten)]
    version: Version,
    /// Any text if the monitor is to be tried.
    #[serde(deserialize_with = "unless_empty")]
    replay: Option<String>,
}

impl Entry {
    /// Returns what the form of a new monitor begins with: it runs dry.
    pub(super) fn new() -> Self {
        Self {
            runs: Some("20".to_owned()),
            threshold: Some("3".to_owned()),
            recover_after: Some("10".to_owned()),
            dry_run: Some("true".to_owned()),
            ..Self::default()
        }
    }

    /// Returns the fields of a monitor.
    pub(super) fn of(monitor: &Monitor) -> Self {
        Self {
            name: monitor.name.clone(),
            measure: monitor.measure.to_string(),
            runs: Some(monitor.runs.to_string()),
            threshold: Some(shown(monitor.threshold)),
            branch: monitor.branch.clone(),
            action: monitor.action.to_string(),
            recover_after: Some(monitor.recover_after.to_string()),
            dry_run: monitor.dry_run.then(|| "true".to_owned()),
            version: Version::of(&monitor.data_version),
            replay: None,
        }
    }

    /// Returns whether the monitor is to be tried.
    pub(super) fn is_tried(&self) -> bool {
        self.replay.is_some()
    }

    /// Returns the version on which the change of a monitor is based.
    pub(super) fn base(&self) -> Option<&str> {
        self.version.base()
    }

    /// Returns the record for the interface, which checks it.
    pub(super) fn input(&self, version: Option<&str>) -> Value {
        let read = |text: &Option<String>| number_of(text.as_deref());
        let mut input = Map::new();
        input.insert("Name".to_owned(), json!(self.name));
        input.insert("Measure".to_owned(), json!(self.measure));
        input.insert("Runs".to_owned(), read(&self.runs));
        input.insert("Threshold".to_owned(), read(&self.threshold));
        input.insert("Branch".to_owned(), json!(self.branch.trim()));
        input.insert("Action".to_owned(), json!(self.action));
        input.insert("RecoverAfter".to_owned(), read(&self.recover_after));
        input.insert("DryRun".to_owned(), json!(self.dry_run.is_some()));
        input.extend(version.map(|version| ("DataVersion".to_owned(), json!(version))));
        Value::Object(input)
    }

    /// Returns the record to try, which may not have its name yet.
    pub(super) fn tried(&self) -> Value {
        let mut input = self.input(None);
        if self.name.trim().is_empty() {
            input["Name"] = json!("Tried");
        }
        json!({ "Monitor": input })
    }
}

/// Returns a threshold as text.
pub(super) fn shown(threshold: f64) -> String {
    threshold.to_string()
}

/// The form of a page, why it was refused, and what its monitor would have done.
pub(super) struct Filled {
    entry: Entry,
    is_refused: bool,
    /// Why it was refused, unless its version says so.
    problem: Option<String>,
    replayed: Option<MonitorBacktest>,
}

impl Filled {
    pub(super) fn with(entry: Entry) -> Self {
        Self { entry, is_refused: false, problem: None, replayed: None }
    }

    /// Returns the form of a monitor that was refused. Without a problem, the monitor has changed since.
    pub(super) fn refused(entry: Entry, problem: Option<String>) -> Self {
        Self { entry, is_refused: true, problem, replayed: None }
    }

    /// Tries the monitor that was entered over past executions of a project.
    pub(super) async fn tried(api: &Api, project: Uuid, entry: Entry) -> Result<Self, Failure> {
        let path = format!("/api/projects/{project}/monitors/backtests");
        Ok(match backtest::replay(api, &path, &entry.tried()).await? {
            Ok(replayed) => Self { replayed: Some(replayed), ..Self::with(entry) },
            Err(problem) => Self::refused(entry, Some(problem)),
        })
    }

    /// The form, which is sent to a page, and what its monitor would have done. A monitor that exists has a present
    /// version.
    pub(super) fn show(&self, page: &str, present: Option<&str>) -> Markup {
        html! {
            @if let Some(problem) = &self.problem { p.alert role="alert" { (plain(problem)) } }
            (form(page, &self.entry, present))
            @if let Some(replayed) = &self.replayed { (action::replayed(replayed)) }
        }
    }

    pub(super) fn status(&self) -> StatusCode {
        if self.is_refused { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK }
    }
}

/// The form, which is sent to `action`.
fn form(action: &str, entry: &Entry, present: Option<&str>) -> Markup {
    html! {
        form.filters method="post" action=(action) {
            @if let Some(present) = present { (entry.version.fields(present, "monitor")) }
            (text_field("name", "Name", Some(&entry.name)))
            (select_field("measure", "Measures", MEASURES.map(|(one, label)| (one.name(), label)), &entry.measure))
            (number_field("threshold", "Acts from", (0, None), entry.threshold.as_deref()))
            (number_field("runs", "In the last runs", (5, Some(50)), entry.runs.as_deref()))
            (text_field("branch", "Branch, or release/* (empty: the default branch)", Some(&entry.branch)))
            (select_field("action", "Action", ACTIONS.map(|(one, label)| (one.name(), label)), &entry.action))
            (number_field("recoverAfter", "Lifts after passed runs", (1, Some(50)), entry.recover_after.as_deref()))
            (check_field("dryRun", "Dry run: only record what it would have done", entry.dry_run.is_some()))
            button { @if present.is_some() { "Save" } @else { "Create" } }
            (backtest::button(action))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interface_checks_numbers_as_they_were_entered() {
        let entry = Entry {
            name: "Flaky".to_owned(),
            threshold: Some("2.5".to_owned()),
            runs: Some("many".to_owned()),
            ..Entry::default()
        };
        let input = entry.input(Some("7"));
        assert_eq!((&input["Threshold"], &input["Runs"]), (&json!(2.5), &json!("many")));
        assert_eq!((&input["RecoverAfter"], &input["DataVersion"]), (&Value::Null, &json!("7")));
        assert_eq!(Entry::new().input(None)["DryRun"], true, "a new monitor runs dry");
        assert_eq!(
            Entry::new().tried()["Monitor"]["Name"],
            "Tried",
            "it needs no name to be tried"
        );
        assert_eq!(entry.tried()["Monitor"]["Name"], "Flaky");
    }
}
