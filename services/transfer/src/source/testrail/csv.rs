//! The CSV exports of test cases and of runs. Columns are found by their names, in any order.

use std::{collections::HashMap, fs::File, path::Path, time::Duration};

use anyhow::{Context, Result, anyhow};
use chrono::{DateTime, TimeDelta, Utc};
use csv::{ReaderBuilder, StringRecord};

use super::{TestRail, verdict, xml::single_step};
use crate::source::{
    model::{Case, Outcome, Run, Step, StepOutcome},
    store::Store,
    text::{description, seconds, time},
};

/// The columns of a file by their names in lower case.
pub(super) struct Columns(HashMap<String, usize>);

impl Columns {
    fn of(header: &StringRecord) -> Option<Self> {
        let names =
            header.iter().map(|name| name.trim_start_matches('\u{feff}').trim().to_lowercase());
        let this = Self(names.zip(0..).collect());
        let is_known = this.has("title") && (this.has("id") || this.has("case id"));
        is_known.then_some(this)
    }

    fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Whether the file has the results of a run.
    pub(super) fn is_run(&self) -> bool {
        self.has("status") && self.has("case id")
    }

    /// Returns the first of the columns that is there and not empty.
    fn get<'r>(&self, row: &'r StringRecord, names: &[&str]) -> &'r str {
        let cells = names.iter().filter_map(|name| row.get(*self.0.get(*name)?));
        cells.map(str::trim).find(|cell| !cell.is_empty()).unwrap_or_default()
    }
}

/// Returns the columns of a CSV file by its beginning, if it is one of TestRail.
pub(super) fn columns(head: &str) -> Option<Columns> {
    if head.starts_with(['<', '{', '[']) {
        return None;
    }
    let mut reader = ReaderBuilder::new().flexible(true).from_reader(head.as_bytes());
    Columns::of(reader.headers().ok()?)
}

impl TestRail {
    /// Reads test cases. A row without an id is a further step of the case before it.
    pub(super) fn read_cases(&mut self, file: &Path, store: &mut Store) -> Result<()> {
        let mut current: Option<(Case, String)> = None;
        rows(file, &mut |columns, row| {
            let number = columns.get(row, &["id", "case id"]);
            let is_next = match &current {
                Some((_, before)) => !number.is_empty() && number != before,
                None => true,
            };
            if is_next {
                anyhow::ensure!(!number.is_empty(), "the row has no ID");
                if let Some((case, _)) = current.take() {
                    store.case(case)?;
                }
                let case = self.case_of_row(columns, row, number);
                let set = columns.get(row, &["suite"]);
                if !set.is_empty() {
                    store.include(set, &case.identifier);
                }
                current = Some((case, number.to_owned()));
            }
            let step = Step {
                input: columns.get(row, &["steps (step)", "steps separated (step)"]).to_owned(),
                expected: columns
                    .get(row, &["steps (expected result)", "steps separated (expected result)"])
                    .to_owned(),
                comment: columns.get(row, &["steps (additional info)"]).to_owned(),
            };
            if let Some((case, _)) = &mut current
                && (!step.input.is_empty() || !step.expected.is_empty())
            {
                case.steps.push(step);
            }
            Ok(())
        })?;
        current.map_or(Ok(()), |(case, _)| store.case(case))
    }

    fn case_of_row(&mut self, columns: &Columns, row: &StringRecord, number: &str) -> Case {
        let get = |names: &[&str]| columns.get(row, names).to_owned();
        let has_steps = columns.has("steps (step)") || columns.has("steps separated (step)");
        let parts = [
            ("Preconditions", get(&["preconditions"])),
            ("Section", get(&["section hierarchy", "section"]).replace(" > ", " / ")),
            ("Type", get(&["type"])),
            ("Priority", get(&["priority"])),
            ("References", get(&["references"])),
        ];
        let steps = if has_steps {
            Vec::new()
        } else {
            single_step(&get(&["steps"]), &get(&["expected result"]))
        };
        Case {
            identifier: self
                .identifier(number, columns.get(row, &["automation id", "automation_id"])),
            name: get(&["title"]),
            description: description(parts),
            steps,
            archived: false,
        }
    }

    /// Reads the results of a run. A row without a case is a further step of the result before it.
    pub(super) fn read_run(&mut self, file: &Path, store: &mut Store) -> Result<()> {
        let key_of_file = store.key_of(file)?;
        let of_file = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut current: Option<(String, Outcome)> = None;
        rows(file, &mut |columns, row| {
            let get = |names: &[&str]| columns.get(row, names);
            let number = get(&["case id"]);
            let step = step_of_row(columns, row);
            if number.is_empty() {
                let (_, outcome) =
                    current.as_mut().ok_or_else(|| anyhow!("the row has no Case ID"))?;
                outcome.steps.extend(step);
                return Ok(());
            }
            if let Some((run, outcome)) = current.take() {
                store.result(&run, outcome)?;
            }
            let set = Some(get(&["run"])).filter(|name| !name.is_empty()).unwrap_or(&of_file);
            let key = match get(&["run id"]) {
                "" => format!("{set}\n{key_of_file}"),
                id => id.to_owned(),
            };
            store.run(Run {
                key: key.clone(),
                set: set.to_owned(),
                tags: get(&["run configuration", "plan"]).replace(',', " "),
                build: Some(get(&["version"]).to_owned()).filter(|build| !build.is_empty()),
                ..Run::default()
            })?;
            let tested = time(get(&["tested on", "created on"]));
            let elapsed = seconds(get(&["elapsed"]));
            let begun = tested.zip(elapsed).and_then(|(end, seconds)| before(end, seconds));
            let outcome = Outcome {
                identifier: self.known(number),
                name: get(&["title"]).to_owned(),
                verdict: verdict(get(&["status"])),
                start: begun.or(tested),
                end: tested,
                seconds: elapsed,
                steps: step.into_iter().collect(),
                comment: get(&["comment"]).to_owned(),
                ticket: get(&["defects"]).to_owned(),
                ..Outcome::default()
            };
            current = Some((key, outcome));
            Ok(())
        })?;
        current.map_or(Ok(()), |(run, outcome)| store.result(&run, outcome))
    }
}

/// Returns the time that many seconds before another one.
fn before(end: DateTime<Utc>, seconds: f64) -> Option<DateTime<Utc>> {
    let duration = Duration::try_from_secs_f64(seconds).ok()?;
    end.checked_sub_signed(TimeDelta::from_std(duration).ok()?)
}

fn step_of_row(columns: &Columns, row: &StringRecord) -> Option<StepOutcome> {
    let get = |names: &[&str]| columns.get(row, names).to_owned();
    let step = StepOutcome {
        input: get(&["steps (step)"]),
        expected: get(&["steps (expected result)"]),
        actual: get(&["steps (actual result)"]),
        verdict: verdict(&get(&["steps (status)"])),
    };
    (!step.input.is_empty() || !step.actual.is_empty()).then_some(step)
}

/// Calls `each` with the rows of a file.
fn rows(file: &Path, each: &mut dyn FnMut(&Columns, &StringRecord) -> Result<()>) -> Result<()> {
    let opened = File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
    let mut reader = ReaderBuilder::new().from_reader(opened);
    let header = reader.headers().with_context(|| format!("{}, line 1", file.display()))?.clone();
    let columns = Columns::of(&header).with_context(|| {
        format!("{}, line 1: the columns ID and Title are required", file.display())
    })?;
    let mut row = StringRecord::new();
    loop {
        let read = reader.read_record(&mut row);
        if !read.with_context(|| file.display().to_string())? {
            return Ok(());
        }
        let line = row.position().map_or(0, csv::Position::line);
        each(&columns, &row).with_context(|| format!("{}, line {line}", file.display()))?;
    }
}
