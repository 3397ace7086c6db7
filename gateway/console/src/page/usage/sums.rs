//! Sums of hours of execution.

use std::collections::BTreeMap;

use maud::{Markup, html};
use serde::Serialize;

use super::{Filter, month::Month};
use crate::{
    api::{Api, address},
    failure::Failure,
    page::paged::shown_of,
    record::{ExecutionTime, Project},
    text::{clean, number, plain},
};

/// Number of entries that the interface returns at once, and of requests for a page.
const LIMIT: u32 = 1000;
const REQUESTS: usize = 3;

/// Maximum number of rows of a table.
const ROWS: usize = 100;

/// Hours of execution, the latest month first.
pub(super) struct Times {
    entries: Vec<ExecutionTime>,
    is_whole: bool,
}

/// The query of a call that lists entries.
#[derive(Serialize)]
struct Query<'a> {
    limit: u32,
    #[serde(flatten)]
    filter: &'a Filter,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sum {
    executions: i64,
    instances: i64,
    hours: f64,
}

impl Times {
    pub(super) async fn read(api: &Api, filter: &Filter) -> Result<Self, Failure> {
        let (mut entries, mut cursor) = (Vec::new(), None);
        for _ in 0..REQUESTS {
            let query = Query { limit: LIMIT, filter, cursor };
            let part = api.list::<ExecutionTime>("/api/executiontimes", &query).await?;
            entries.extend(part.items);
            cursor = part.next;
            if cursor.is_none() {
                return Ok(Self { entries, is_whole: true });
            }
        }
        Ok(Self { entries, is_whole: false })
    }

    /// The sums by month, project, target group and test set.
    pub(super) fn show(&self, projects: &[Project]) -> Markup {
        let mut months = self.by(|time| time.month.as_str());
        months.sort_by(|(one, _), (other, _)| other.cmp(one));
        let sets = self.by(|time| {
            (&time.project_id, &time.test_set_id, time.test_set_name.as_deref().unwrap_or_default())
        });
        html! {
            @if !self.is_whole {
                p.hint { "The sums are those of the latest executions only: the number of entries of a page is limited." }
            }
            @if self.entries.is_empty() { p.empty { "No execution ended in this time." } } @else {
                (table("Month", &months, |month| html! {
                    (Month::parse(month).map_or_else(|| (*month).to_owned(), Month::label))
                }))
                (table("Project", &self.by(|time| time.project_id.as_str()), |id| project(projects, id)))
                (table("Target group", &self.by(|time| time.target_group.as_str()), |group| html! {
                    @if group.is_empty() { "Reported from elsewhere" } @else { bdi { (plain(group)) } }
                }))
                (table("Test set", &sets, |(project, set, name)| test_set(projects, project, set, name)))
            }
        }
    }

    /// Returns sums of the entries with the same key, those with the most hours first.
    fn by<'a, K: Copy + Ord>(&'a self, key: impl Fn(&'a ExecutionTime) -> K) -> Vec<(K, Sum)> {
        let mut sums = BTreeMap::<K, Sum>::new();
        for time in &self.entries {
            let sum = sums.entry(key(time)).or_default();
            sum.executions += time.executions;
            sum.instances += time.instances;
            sum.hours += time.duration_in_h;
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_by(|(_, one), (_, other)| other.hours.total_cmp(&one.hours));
        sums
    }
}

/// A table of sums, which are called by what they are of.
fn table<K>(noun: &str, sums: &[(K, Sum)], name: impl Fn(&K) -> Markup) -> Markup {
    let shown = sums.len().min(ROWS);
    html! {
        h2 { "By " (noun.to_lowercase()) }
        div.sums tabindex="0" role="region" aria-label=(format!("Hours by {}", noun.to_lowercase())) {
            table {
                thead { tr {
                    th scope="col" { (noun) }
                    @for figure in ["Executions", "Instances", "Hours"] { th.num scope="col" { (figure) } }
                } }
                tbody { @for (key, sum) in sums.iter().take(ROWS) { tr {
                    th scope="row" { (name(key)) }
                    td.num { (number(sum.executions)) }
                    td.num { (number(sum.instances)) }
                    td.num { (format!("{:.2}", sum.hours)) }
                } } }
            }
        }
        (shown_of(shown, sums.len(), &noun.to_lowercase()))
    }
}

fn project(projects: &[Project], id: &str) -> Markup {
    let known = projects.iter().find(|project| project.id == id);
    html! {
        @match known {
            Some(project) => a href=(format!("/projects/{id}")) { bdi { (plain(&project.name)) } },
            None => { "Project " code { (plain(id)) } },
        }
    }
}

fn test_set(projects: &[Project], project: &str, set: &str, name: &str) -> Markup {
    let is_known = projects.iter().any(|known| known.id == project);
    html! {
        @if name.is_empty() { "A test set of a deleted project" }
        @else if is_known { a href=(format!("/projects/{project}/sets/{set}")) { bdi { (plain(name)) } } }
        @else { bdi { (plain(name)) } }
    }
}

/// Links to the entries as a file.
pub(super) fn download_link(filter: &Filter) -> Markup {
    let months = [&filter.from, &filter.to].map(|month| month.as_deref().unwrap_or_default());
    let file = format!("executiontimes-{}-{}.json", months[0], months[1]);
    html! {
        p { a href=(address("/usage/executiontimes", filter)) download=(clean(&file)) { "Download the hours as JSON" } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(month: &str, group: &str, hours: f64) -> ExecutionTime {
        let text = str::to_owned;
        ExecutionTime {
            month: text(month),
            project_id: text("p"),
            test_set_id: text("s"),
            test_set_name: None,
            target_group: text(group),
            executions: 1,
            instances: 2,
            duration_in_h: hours,
        }
    }

    #[test]
    fn sums_with_the_most_hours_come_first() {
        let entries = vec![
            time("2026-11", "linux", 1.0),
            time("2026-10", "linux", 0.5),
            time("2026-10", "", 4.0),
        ];
        let times = Times { entries, is_whole: true };
        let groups = times.by(|time| time.target_group.as_str());
        let sum = |executions, hours| Sum { executions, instances: 2 * executions, hours };
        assert_eq!(groups, [("", sum(1, 4.0)), ("linux", sum(2, 1.5))]);
        let html = times.show(&[]).into_string();
        let (november, october) = (html.find("November 2026"), html.find("October 2026"));
        assert!(november < october && html.contains("A test set of a deleted project"), "{html}");
    }
}
