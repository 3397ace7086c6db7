//! Allure: `history/history.json` of Allure 2 and `history.jsonl` of Allure 3.
//!
//! The history of Allure 2 has no names. They are found in files of the same report or of its
//! results, if these are given too: JSON with a `historyId` and a name.

mod jsonl;

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    Source,
    head::head,
    json::{elements, text},
    model::{Outcome, Run, Verdict},
    store::Store,
    text::milliseconds,
};

/// Time between the results of two runs that nothing else distinguishes, in milliseconds.
const PAUSE: i64 = 30 * 60 * 1000;

/// The name of the test set: reports of Allure have none in their history.
const SET: &str = "Allure";

/// Reads the history of Allure.
#[derive(Default)]
pub(super) struct Allure {
    /// Identifiers and names of tests by their history ids.
    names: HashMap<String, (String, String)>,
}

/// A result in the history of Allure 2.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Item {
    #[serde(default)]
    report_url: Option<String>,
    status: String,
    #[serde(default)]
    status_details: Option<String>,
    #[serde(default)]
    time: Times,
}

impl Item {
    /// Returns the link to the report. Empty if there is none.
    fn link(&self) -> &str {
        let url = self.report_url.as_deref().unwrap_or_default();
        url.split('#').next().unwrap_or_default().trim()
    }
}

#[derive(Default, Deserialize)]
struct Times {
    start: Option<i64>,
    stop: Option<i64>,
}

/// The kind of a file, in the order in which they are read.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Eq, Ord)]
enum Kind {
    Names,
    History,
    Lines,
}

/// Whether a file has a history of Allure, or names of its tests.
pub(super) fn is_allure(head: &str) -> bool {
    kind(head).is_some()
}

fn kind(head: &str) -> Option<Kind> {
    let has = |field: &str| head.contains(&format!("\"{field}\""));
    if !head.starts_with('{') {
        return None;
    }
    if has("testResults") && has("knownTestCaseIds") {
        return Some(Kind::Lines);
    }
    if has("statistic") && has("items") && has("total") {
        return Some(Kind::History);
    }
    (has("historyId") && has("name") && (has("uuid") || has("uid"))).then_some(Kind::Names)
}

impl Source for Allure {
    fn name(&self) -> &'static str {
        "allure"
    }

    fn read(&mut self, files: &[PathBuf], store: &mut Store) -> Result<()> {
        let mut kinds = Vec::new();
        for file in files {
            kinds.push((kind(&head(file)?), file));
        }
        kinds.sort();
        for (kind, file) in &kinds {
            match kind {
                Some(Kind::Names) => self.read_names(file)?,
                Some(Kind::History) => self.read_history(file, store)?,
                Some(Kind::Lines) => jsonl::read(file, store)?,
                None => bail!("{} is not a history of Allure", file.display()),
            }
        }
        if kinds.iter().all(|(kind, _)| *kind == Some(Kind::Names)) {
            bail!("no file has a history: history.json or history.jsonl is missing");
        }
        Ok(())
    }
}

impl Allure {
    fn read_names(&mut self, file: &Path) -> Result<()> {
        elements(file, &[], &mut |record| {
            let (id, title) = (text(&record, "historyId"), text(&record, "name"));
            let labels = record.get("labels").and_then(Value::as_array).into_iter().flatten();
            let framework = labels
                .filter(|label| label["name"] == "framework")
                .find_map(|label| label["value"].as_str());
            let identifier = identifier(&text(&record, "fullName"), &title, framework);
            self.names.insert(id, (identifier, title));
            Ok(())
        })
    }

    /// Reads a history of Allure 2. Runs are distinguished by the links to their reports, or else by
    /// pauses between results.
    fn read_history(&self, file: &Path, store: &mut Store) -> Result<()> {
        let shared = runs_of_shared_links(file)?;
        each_item(file, &mut |id, item| {
            let link = item.link();
            let time = item.time.start.or(item.time.stop).unwrap_or_default();
            let begin =
                |runs: &BTreeSet<i64>| runs.range(..=time).next_back().map_or(0, |run| *run);
            let key = match (link, shared.get(link).map(begin)) {
                ("", begin) => begin.unwrap_or_default().to_string(),
                (link, Some(begin)) => format!("{link}\n{begin}"),
                (link, None) => link.to_owned(),
            };
            let (identifier, title) = match self.names.get(id) {
                Some(names) => names.clone(),
                None => (format!("allure-{id}"), String::new()),
            };
            store.run(Run {
                key: key.clone(),
                set: SET.to_owned(),
                url: has_host(link).then(|| link.to_owned()),
                ..Run::default()
            })?;
            store.result(
                &key,
                Outcome {
                    identifier,
                    name: title,
                    verdict: verdict(&item.status),
                    start: item.time.start.and_then(milliseconds),
                    end: item.time.stop.and_then(milliseconds),
                    comment: item.status_details.unwrap_or_default(),
                    ..Outcome::default()
                },
            )
        })
    }
}

/// Returns the identifier of a test, as results of Allure that are uploaded to Assay have it. A history has no
/// frameworks: the full names of Playwright are recognized.
fn identifier(full: &str, title: &str, framework: Option<&str>) -> String {
    let of_playwright = || if full.contains(" › ") { "playwright" } else { "" };
    let framework = framework.unwrap_or_else(of_playwright);
    assay_formats::allure::identifier(full, title, framework)
}

/// Returns the beginnings of runs by their link, for links that several runs have: those without a host, and
/// those that a test has several results with. A server may give all reports the same link.
fn runs_of_shared_links(file: &Path) -> Result<HashMap<String, BTreeSet<i64>>> {
    let (mut starts, mut shared) = (HashMap::<String, Vec<i64>>::new(), HashSet::new());
    let (mut test, mut links) = (String::new(), HashSet::new());
    each_item(file, &mut |id, item| {
        if id != test {
            id.clone_into(&mut test);
            links.clear();
        }
        let link = item.link().to_owned();
        if !has_host(&link) || !links.insert(link.clone()) {
            shared.insert(link.clone());
        }
        starts.entry(link).or_default().extend(item.time.start);
        Ok(())
    })?;
    starts.retain(|link, _| shared.contains(link));
    Ok(starts.into_iter().map(|(link, starts)| (link, runs(starts))).collect())
}

fn has_host(link: &str) -> bool {
    let rest = link.strip_prefix("http://").or_else(|| link.strip_prefix("https://"));
    rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
}

/// Returns the beginnings of runs, by the starts of their results.
fn runs(mut starts: Vec<i64>) -> BTreeSet<i64> {
    starts.sort_unstable();
    let mut runs = BTreeSet::new();
    let mut last = None;
    for start in starts {
        if last.is_none_or(|last| start - last > PAUSE) {
            runs.insert(start);
        }
        last = Some(start);
    }
    runs
}

/// Calls `each` with the results of a history, oldest first for each test, and the history id.
fn each_item(file: &Path, each: &mut dyn FnMut(&str, Item) -> Result<()>) -> Result<()> {
    elements(file, &[], &mut |mut record: Map<String, Value>| {
        for (id, test) in &mut record {
            let items = test.get_mut("items").map(Value::take).unwrap_or_default();
            let items: Vec<Item> =
                serde_json::from_value(items).with_context(|| format!("{id}: items"))?;
            for item in items.into_iter().rev() {
                each(id, item)?;
            }
        }
        Ok(())
    })
}

/// Returns the result that a status of Allure stands for.
fn verdict(status: &str) -> Verdict {
    match status.to_lowercase().as_str() {
        "passed" => Verdict::Passed,
        "failed" => Verdict::Failed,
        "broken" => Verdict::Error,
        "skipped" => Verdict::Canceled,
        _ => Verdict::Unknown(status.to_owned()),
    }
}

#[cfg(test)]
mod tests;
