//! Kiwi TCMS: the answers of its JSON-RPC methods `TestCase.filter`, `TestPlan.filter`,
//! `TestRun.filter` and `TestExecution.filter`, each in files of its own.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

use super::{
    Source,
    head::head,
    json::{elements, text},
    model::{Case, NOT_ENDED, Outcome, Run, Step, Verdict},
    store::Store,
    text::{description, time},
    xml::plain,
};

/// The field of an answer with its records.
const RESULT: [&str; 1] = ["result"];

/// The records of a file, in the order in which they are read: later ones refer to earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Eq, Ord)]
enum Noun {
    Case,
    Plan,
    Run,
    Execution,
}

impl Noun {
    /// Recognizes records by fields that only they have.
    fn of(text: &str) -> Option<Self> {
        let has = |field: &str| text.contains(&format!("\"{field}\""));
        if has("case__summary") || has("tested_by") && has("run") {
            return Some(Self::Execution);
        }
        if has("case_status") || has("is_automated") {
            return Some(Self::Case);
        }
        if has("plan__name") || has("build__version") {
            return Some(Self::Run);
        }
        (has("product_version") && has("is_active")).then_some(Self::Plan)
    }
}

/// Reads the answers of Kiwi TCMS.
#[derive(Default)]
pub(super) struct Kiwi {
    /// Identifiers of automated test cases, which are the names of their tests.
    automated: HashMap<i64, String>,
}

/// Whether a file has records of Kiwi TCMS.
pub(super) fn is_kiwi(head: &str) -> bool {
    head.starts_with(['[', '{']) && Noun::of(head).is_some()
}

impl Source for Kiwi {
    fn name(&self) -> &'static str {
        "kiwi"
    }

    fn read(&mut self, files: &[PathBuf], store: &mut Store) -> Result<()> {
        let mut nouns = Vec::new();
        for file in files {
            if !is_empty(file)? {
                nouns.push((noun(file)?, file));
            }
        }
        nouns.sort();
        for (noun, file) in nouns {
            let mut number = 0;
            elements(file, &RESULT, &mut |record| {
                number += 1;
                let read = match noun {
                    Noun::Case => self.case(&record, store),
                    Noun::Plan => Ok(()),
                    Noun::Run => run(&record, store),
                    Noun::Execution => self.execution(&record, store),
                };
                read.with_context(|| format!("record {number}"))
            })?;
        }
        Ok(())
    }
}

impl Kiwi {
    fn case(&mut self, record: &Map<String, Value>, store: &mut Store) -> Result<()> {
        let id = id(record, "id")?;
        let summary = text(record, "summary");
        if record.get("is_automated") == Some(&Value::Bool(true)) && !summary.trim().is_empty() {
            self.automated.insert(id, summary.clone());
        }
        let steps = text(record, "text");
        let parts = [
            ("", plain(&steps)),
            ("Notes", plain(&text(record, "notes"))),
            ("Category", text(record, "category__name")),
            ("Priority", text(record, "priority__value")),
            ("Requirement", text(record, "requirement")),
            ("Script", text(record, "script")),
            ("Arguments", text(record, "arguments")),
            ("Link", text(record, "extra_link")),
        ];
        store.case(Case {
            identifier: self.identifier(id),
            name: summary,
            description: description(parts),
            steps: steps_of(&steps),
            archived: text(record, "case_status__name").eq_ignore_ascii_case("disabled"),
        })
    }

    fn execution(&self, record: &Map<String, Value>, store: &mut Store) -> Result<()> {
        let (case, run) = (id(record, "case")?, id(record, "run")?);
        let verdict = verdict(&text(record, "status__name"));
        store.result(
            &run.to_string(),
            Outcome {
                identifier: self.identifier(case),
                name: text(record, "case__summary"),
                verdict,
                start: time(&text(record, "start_date"))
                    .or_else(|| time(&text(record, "stop_date"))),
                end: time(&text(record, "stop_date")),
                comment: texts(record, "comments", "comment"),
                ticket: texts(record, "links", "").replace('\n', ", "),
                ..Outcome::default()
            },
        )
    }

    /// Returns the identifier of a test case.
    fn identifier(&self, id: i64) -> String {
        self.automated.get(&id).cloned().unwrap_or_else(|| format!("KIWI-{id}"))
    }
}

fn run(record: &Map<String, Value>, store: &mut Store) -> Result<()> {
    let id = id(record, "id")?;
    let plan = text(record, "plan__name");
    let summary = text(record, "summary");
    let set = if plan.trim().is_empty() { summary.clone() } else { plan };
    let end = time(&text(record, "stop_date"));
    store.run(Run {
        key: id.to_string(),
        set,
        start: time(&text(record, "start_date")),
        end,
        tags: summary.replace(',', " ").chars().take(200).collect(),
        build: Some(text(record, "build__name")).filter(|build| !build.is_empty()),
        url: None,
        left_out: end.is_none().then_some(NOT_ENDED),
    })
}

/// Returns the steps of a text in Markdown with a numbered list; none if it has no such list.
fn steps_of(text: &str) -> Vec<Step> {
    let mut steps = Vec::<Step>::new();
    for line in text.lines() {
        let trimmed = line.trim_start();
        let digits = trimmed.chars().take_while(char::is_ascii_digit).count();
        let rest = trimmed[digits..].strip_prefix(['.', ')']).filter(|_| digits > 0);
        match (rest.and_then(|rest| rest.strip_prefix(' ')), steps.last_mut()) {
            (Some(input), _) => {
                steps.push(Step { input: input.trim().to_owned(), ..Step::default() });
            }
            (None, Some(step)) if line.starts_with([' ', '\t']) && !trimmed.is_empty() => {
                step.input = format!("{}\n{}", step.input, trimmed.trim_end());
            }
            _ => {}
        }
    }
    steps
}

/// Returns the result that a status of Kiwi TCMS stands for.
fn verdict(status: &str) -> Verdict {
    match status.to_uppercase().as_str() {
        "" | "IDLE" | "RUNNING" | "PAUSED" => Verdict::None,
        "PASSED" | "WAIVED" => Verdict::Passed,
        "FAILED" => Verdict::Failed,
        "ERROR" => Verdict::Error,
        "BLOCKED" => Verdict::Aborted,
        _ => Verdict::Unknown(status.to_owned()),
    }
}

/// Returns the texts of a list, or of a field of its records, on lines. Only executions that were read
/// from a URL have such lists.
fn texts(record: &Map<String, Value>, list: &str, field: &str) -> String {
    let list = record.get(list).and_then(Value::as_array).into_iter().flatten();
    let texts = list.filter_map(|one| one.as_str().or_else(|| one.get(field)?.as_str()));
    texts.collect::<Vec<_>>().join("\n")
}

fn id(record: &Map<String, Value>, field: &str) -> Result<i64> {
    record.get(field).and_then(Value::as_i64).with_context(|| format!("{field}: must be a number"))
}

/// Returns whether a file is an empty list.
fn is_empty(file: &Path) -> Result<bool> {
    let head = head(file)?;
    Ok(head.chars().filter(|c| !c.is_whitespace()).eq("[]".chars()))
}

fn noun(file: &Path) -> Result<Noun> {
    match Noun::of(&head(file)?) {
        Some(noun) => Ok(noun),
        None => bail!("{} has no records of Kiwi TCMS", file.display()),
    }
}

#[cfg(test)]
mod tests;
