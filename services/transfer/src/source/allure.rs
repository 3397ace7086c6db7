//! Allure: `history/history.json` of Allure 2 and `history.jsonl` of Allure 3.
//!
//! The history of Allure 2 has no names. They are found in files of the same report or of its
//! results, if these are given too: JSON with a `historyId` and a name.

mod jsonl;

use std::{
    collections::{BTreeSet, HashMap},
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
    text::{milliseconds, name},
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
            let identifier = identifier(&text(&record, "fullName"), &title);
            self.names.insert(id, (identifier, title));
            Ok(())
        })
    }

    /// Reads a history of Allure 2. Runs are distinguished by the links to their reports, or else by
    /// pauses between results.
    fn read_history(&self, file: &Path, store: &mut Store) -> Result<()> {
        let mut starts = Vec::new();
        each_item(file, &mut |_, item| {
            starts.extend(item.time.start.filter(|_| item.report_url.is_none()));
            Ok(())
        })?;
        let runs = runs(starts);
        each_item(file, &mut |id, item| {
            let begin = item.time.start.or(item.time.stop).unwrap_or_default();
            let url = item.report_url.as_deref().map(|url| url.split('#').next().unwrap_or(url));
            let key = match url {
                Some(url) => url.to_owned(),
                None => runs.range(..=begin).next_back().map_or(0, |run| *run).to_string(),
            };
            let (identifier, title) = match self.names.get(id) {
                Some(names) => names.clone(),
                None => (format!("allure-{id}"), String::new()),
            };
            let link = url.filter(|url| url.starts_with("http://") || url.starts_with("https://"));
            store.run(Run {
                key: key.clone(),
                set: SET.to_owned(),
                url: link.map(str::to_owned),
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

/// Returns the identifier of a test, as results of Allure that are uploaded to Assay have it.
fn identifier(full: &str, title: &str) -> String {
    match full.trim() {
        "" => name(title),
        full => full.replacen('#', ".", 1),
    }
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
