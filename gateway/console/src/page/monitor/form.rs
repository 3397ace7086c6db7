//! The form of a monitor.

use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    page::{
        paged::unless_empty,
        part::{number_field, text_field},
    },
    record::Monitor,
    text::plain,
};

/// The measures and the actions of the interface, and what the form calls them.
const MEASURES: [(&str, &str); 4] = [
    ("Recoveries", "times it recovered from at most two failures"),
    ("PassOnRetry", "runs that passed only on a retry"),
    ("FailureRate", "share of runs that failed, in percent"),
    ("Duration", "median duration, in seconds"),
];
const ACTIONS: [(&str, &str); 3] = [
    ("Mute", "mute: failures do not count"),
    ("Skip", "skip: engines and runners leave it out"),
    ("Notify", "notify"),
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
    #[serde(deserialize_with = "unless_empty")]
    version: Option<String>,
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
            measure: monitor.measure.clone(),
            runs: Some(monitor.runs.to_string()),
            threshold: Some(shown(monitor.threshold)),
            branch: monitor.branch.clone(),
            action: monitor.action.clone(),
            recover_after: Some(monitor.recover_after.to_string()),
            dry_run: monitor.dry_run.then(|| "true".to_owned()),
            version: None,
        }
    }

    /// Returns the version that the user has seen.
    pub(super) fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// Returns the record for the interface, which checks it.
    pub(super) fn input(&self, version: Option<&str>) -> Value {
        let read = |text: &Option<String>| {
            let text = text.as_deref()?.trim();
            Some(text.parse().map_or_else(|_| json!(text), Value::Number))
        };
        let mut input = Map::new();
        input.insert("Name".to_owned(), json!(self.name));
        input.insert("Measure".to_owned(), json!(self.measure));
        input.insert("Runs".to_owned(), json!(read(&self.runs)));
        input.insert("Threshold".to_owned(), json!(read(&self.threshold)));
        input.insert("Branch".to_owned(), json!(self.branch.trim()));
        input.insert("Action".to_owned(), json!(self.action));
        input.insert("RecoverAfter".to_owned(), json!(read(&self.recover_after)));
        input.insert("DryRun".to_owned(), json!(self.dry_run.is_some()));
        input.extend(version.map(|version| ("DataVersion".to_owned(), json!(version))));
        Value::Object(input)
    }
}

/// Returns a threshold as text.
pub(super) fn shown(threshold: f64) -> String {
    threshold.to_string()
}

/// The form, which is sent to `action`. A monitor that exists has a version.
pub(super) fn form(
    action: &str,
    entry: &Entry,
    version: Option<&str>,
    problem: Option<&str>,
) -> Markup {
    html! {
        @if let Some(problem) = problem { p.alert role="alert" { (plain(problem)) } }
        form.filters method="post" action=(action) {
            @if let Some(version) = version { input type="hidden" name="version" value=(version); }
            (text_field("name", "Name", Some(&entry.name)))
            (choice("measure", "Measures", &MEASURES, &entry.measure))
            (number_field("threshold", "Acts from", (0, None), entry.threshold.as_deref()))
            (number_field("runs", "In the last runs", (5, Some(50)), entry.runs.as_deref()))
            (text_field("branch", "Branch (empty: the default branch)", Some(&entry.branch)))
            (choice("action", "Action", &ACTIONS, &entry.action))
            (number_field("recoverAfter", "Lifts after passed runs", (1, Some(50)), entry.recover_after.as_deref()))
            label.check {
                input type="checkbox" name="dryRun" value="true" checked[entry.dry_run.is_some()];
                " Dry run: only record what it would have done"
            }
            button { @if version.is_some() { "Save" } @else { "Create" } }
        }
    }
}

/// A choice between values of the interface.
fn choice(name: &str, label: &str, options: &[(&str, &str)], value: &str) -> Markup {
    html! {
        label.field {
            span { (label) }
            select name=(name) {
                @for (option, meaning) in options {
                    option value=(option) selected[*option == value] { (meaning) }
                }
            }
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
    }
}
