//! A list of executions with its filter.

use maud::{Markup, html};
use serde::{Deserialize, Serialize};

use super::{
    paged::{Paged, unless_empty},
    part::{choice, execution_row, text_field},
};
use crate::{
    api::{Api, List},
    failure::Failure,
    record::{ExecutionEntry, Outcome},
    text::zoned_day,
};

/// Number of executions on a page.
const EXECUTIONS: u32 = 25;

/// The executions to show, as the interface names them.
#[derive(Clone, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Filter {
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    result: Option<String>,
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    environment_id: Option<String>,
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    tag: Option<String>,
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    from_date: Option<String>,
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    to_date: Option<String>,
    /// Minutes by which UTC is ahead at the start of the first day and at the end of the last one, if the
    /// browser says so.
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    from_date_offset: Option<String>,
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    to_date_offset: Option<String>,
}

impl Filter {
    /// Returns the filter of a branch and an environment, if they are given.
    pub(super) fn of(branch: Option<&str>, environment: Option<&str>) -> Self {
        let [branch, environment_id] = [branch, environment].map(|text| text.map(str::to_owned));
        Self { branch, environment_id, ..Self::default() }
    }

    /// Returns the filter of the interface.
    fn of_interface(&self) -> Self {
        let zoned = |day: &Option<String>, ahead: &Option<String>| {
            day.as_deref().map(|day| zoned_day(day, ahead.as_deref()))
        };
        Self {
            from_date: zoned(&self.from_date, &self.from_date_offset),
            to_date: zoned(&self.to_date, &self.to_date_offset),
            from_date_offset: None,
            to_date_offset: None,
            ..self.clone()
        }
    }
}

/// Reads a part of the executions that the interface lists at a path.
pub(super) async fn read(
    api: &Api,
    path: &str,
    query: &Paged<Filter>,
) -> Result<List<ExecutionEntry>, Failure> {
    let query = Paged { filter: query.filter.of_interface(), cursor: query.cursor.clone() };
    api.list(path, &query.listed(EXECUTIONS)).await
}

/// The executions of a page, with the names of their test sets if they have several.
pub(super) fn list(
    page: &str,
    executions: &List<ExecutionEntry>,
    query: &Paged<Filter>,
    with_set: bool,
) -> Markup {
    html! {
        (filters(page, &query.filter))
        @if executions.items.is_empty() {
            @if query.filter == Filter::default() || query.cursor.is_some() {
                (query.nothing("No executions yet."))
            } @else {
                p.empty { "No execution matches these filters. " a href=(page) { "Show all" } }
            }
        }
        ol.rows { @for execution in &executions.items { (execution_row(execution, with_set)) } }
        (query.pager(page, executions.next.as_deref()))
    }
}

fn filters(path: &str, filter: &Filter) -> Markup {
    let results = Outcome::EACH.into_iter().filter(|result| *result != Outcome::NotExecuted);
    let results: Vec<_> = results.map(|result| (result.name(), label(result))).collect();
    let date = |name: &str, label: &str, value: &Option<String>| {
        html! {
            label.field {
                span { (label) span.utc { " (UTC)" } }
                input type="date" name=(name) value=[value.as_deref()] data-last[name == "toDate"];
            }
        }
    };
    html! {
        form.filters action=(path) {
            (choice("result", "Result", &results, filter.result.as_deref()))
            (text_field("branch", "Branch", filter.branch.as_deref()))
            (text_field("tag", "Tag", filter.tag.as_deref()))
            @if let Some(environment) = &filter.environment_id {
                input type="hidden" name="environmentId" value=(environment);
            }
            (date("fromDate", "From", &filter.from_date))
            (date("toDate", "To", &filter.to_date))
            button { "Filter" }
            @if *filter != Filter::default() { a.button.quiet href=(path) { "Clear" } }
        }
    }
}

/// Returns the label of the result of executions. Those with failures and errors have failed.
fn label(result: Outcome) -> &'static str {
    if result == Outcome::Error { "Failed, with errors" } else { result.summary() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_names_results_as_the_rows_do() {
        let html = filters("/", &Filter::default()).into_string();
        for (name, label) in
            [("Failed", "Failed"), ("Error", "Failed, with errors"), ("Canceled", "Canceled")]
        {
            let option = format!("<option value=\"{name}\">{label}</option>");
            assert!(html.contains(&option), "{option} in {html}");
        }
    }
}
