//! Writes what readers pass on to an export, whatever its order.

mod line;

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque, hash_map::DefaultHasher},
    hash::{Hash, Hasher},
    path::Path,
};

use anyhow::Result;
use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};

use self::line::result_line;
use super::{
    model::{Case, Outcome, Run, Verdict},
    text::{clipped, identifier, key, name, stamp},
};
use crate::folder::{EXECUTIONS, Folder, Name, Part, Place, TEST_CASES, TEST_SETS};

/// Maximum number of files of results that are open.
const OPEN: usize = 64;

/// Maximum length of a ticket, in characters.
const LONGEST_TICKET: usize = 255;

/// An export that files of a tool are converted to.
pub(super) struct Store {
    tool: &'static str,
    folder: Folder,
    cases: Part,
    /// Digests of the identifiers of test cases.
    identifiers: HashSet<u64>,
    /// The test sets with their test cases.
    sets: BTreeMap<String, Vec<String>>,
    runs: BTreeMap<Name, Stored>,
    /// The keys of runs whose files are open, those that were written last at the end.
    open: VecDeque<Name>,
    /// How many results each test case has in each run, by a digest, and the number of attempts at
    /// the last of them.
    counts: HashMap<u64, (u16, u16)>,
    unknown: BTreeMap<String, u64>,
}

/// A run with the files of its results and reviews.
struct Stored {
    run: Run,
    results: Part,
    reviews: Part,
    files: Part,
    /// The names of its files.
    names: HashSet<Name>,
    first: Option<DateTime<Utc>>,
    last: Option<DateTime<Utc>>,
}

impl Store {
    pub(super) fn create(tool: &'static str, folder: &Path) -> Result<Self> {
        let folder = Folder::open(folder)?;
        Ok(Self {
            tool,
            cases: folder.begin(&TEST_CASES)?,
            folder,
            identifiers: HashSet::new(),
            sets: BTreeMap::new(),
            runs: BTreeMap::new(),
            open: VecDeque::new(),
            counts: HashMap::new(),
            unknown: BTreeMap::new(),
        })
    }

    /// Adds a test case, unless there is one with its identifier.
    #[expect(clippy::needless_pass_by_value, reason = "readers make one for the store")]
    pub(super) fn case(&mut self, case: Case) -> Result<()> {
        let id = identifier(&case.identifier);
        if !self.identifiers.insert(digest(&[&id])) {
            return Ok(());
        }
        let steps: Vec<Value> = (1..)
            .zip(&case.steps)
            .map(|(number, step)| {
                json!({
                    "StepNr": number, "TestInput": clipped(&step.input),
                    "ExpectedResult": clipped(&step.expected), "Comment": clipped(&step.comment),
                })
            })
            .collect();
        let plans = if steps.is_empty() {
            Vec::new()
        } else {
            vec![json!({"TestPlan": {"Status": "ReadyForExecution"}, "AutomationSteps": steps})]
        };
        self.cases.line(&json!({
            "Id": id, "Identifier": id, "Name": name(&case.name),
            "Description": clipped(&case.description), "Archived": case.archived,
            "TestPlans": plans,
        }))
    }

    /// Adds a test case to a test set.
    pub(super) fn include(&mut self, set: &str, case: &str) {
        self.sets.entry(name(set)).or_default().push(identifier(case));
    }

    /// Adds a run, or what is known of it beyond its results.
    pub(super) fn run(&mut self, run: Run) -> Result<()> {
        let id = self.id(&run.key)?;
        if let Some(stored) = self.runs.get_mut(&id) {
            stored.run.add(run);
        } else {
            let stored = self.begin(&id, run)?;
            self.runs.insert(id, stored);
        }
        Ok(())
    }

    /// Adds a result to a run.
    #[expect(clippy::needless_pass_by_value, reason = "readers make one for the store")]
    pub(super) fn result(&mut self, run: &str, outcome: Outcome) -> Result<()> {
        if outcome.verdict == Verdict::None {
            return Ok(());
        }
        if let Verdict::Unknown(status) = &outcome.verdict {
            *self.unknown.entry(status.clone()).or_default() += 1;
        }
        let id = self.id(run)?;
        if !self.runs.contains_key(&id) {
            let run = Run { key: run.to_owned(), ..Run::default() };
            self.run(run)?;
        }
        self.keep_open(&id)?;
        let case = identifier(&outcome.identifier);
        let slot = digest(&[id.as_str(), &case, &outcome.variant]);
        let (count, attempts) = self.counts.entry(slot).or_insert((1, 0));
        if *attempts == 0 || outcome.is_retry {
            *attempts += 1;
        } else {
            (*count, *attempts) = (*count + 1, 1);
        }
        let line = result_line(&case, &outcome, *count, *attempts);
        let Some(stored) = self.runs.get_mut(&id) else { return Ok(()) };
        for file in &outcome.files {
            if stored.names.insert(file.name.clone()) {
                self.folder.copy(&file.folder, &file.source, &Place::file(&id, &file.name))?;
                stored.files.line(&json!({"Name": file.name, "ContentType": file.content_type}))?;
            }
        }
        stored.first = earliest(stored.first, outcome.start.or(outcome.end));
        stored.last = stored.last.max(outcome.end.or(outcome.start));
        stored.results.line(&line)?;
        if !outcome.ticket.trim().is_empty() {
            let ticket: String = name(&outcome.ticket).chars().take(LONGEST_TICKET).collect();
            stored.reviews.line(&json!({
                "TestCaseIdentifier": case, "Status": "InReview", "Ticket": ticket,
            }))?;
        }
        Ok(())
    }

    /// Completes the export. Returns the statuses that only the other tool knows, with the numbers of
    /// results.
    pub(super) fn complete(mut self) -> Result<BTreeMap<String, u64>> {
        self.folder.finish(self.cases)?;
        for stored in self.runs.values() {
            self.sets.entry(stored.set()).or_default();
        }
        let mut sets = self.folder.begin(&TEST_SETS)?;
        for (set, cases) in &self.sets {
            sets.line(&json!({"Id": set, "Name": set, "TestCases": cases}))?;
        }
        self.folder.finish(sets)?;
        let mut runs: Vec<_> = self.runs.into_iter().collect();
        runs.sort_by(|(a, one), (b, other)| (one.begin(), a).cmp(&(other.begin(), b)));
        let mut executions = self.folder.begin(&EXECUTIONS)?;
        for (id, stored) in runs {
            executions.line(&stored.header(&id))?;
            self.folder.finish(stored.results)?;
            self.folder.finish(stored.reviews)?;
            self.folder.finish(stored.files)?;
        }
        self.folder.finish(executions)?;
        self.folder.complete(self.tool)?;
        Ok(self.unknown)
    }

    /// Returns the key of the execution of a run.
    fn id(&self, run: &str) -> Result<Name> {
        Name::parse(&format!("{}-{}", self.tool, key(run)))
    }

    fn begin(&mut self, id: &Name, run: Run) -> Result<Stored> {
        let mut results = self.folder.begin(&Place::results(id))?;
        let mut reviews = self.folder.begin(&Place::reviews(id))?;
        let mut files = self.folder.begin(&Place::files(id))?;
        for part in [&mut results, &mut reviews, &mut files] {
            part.close()?;
        }
        let names = HashSet::new();
        Ok(Stored { run, results, reviews, files, names, first: None, last: None })
    }

    /// Remembers that the files of a run are written, and closes those that were not for long.
    fn keep_open(&mut self, id: &Name) -> Result<()> {
        if self.open.back().is_some_and(|last| last == id) {
            return Ok(());
        }
        if let Some(index) = self.open.iter().position(|one| one == id) {
            self.open.remove(index);
        }
        self.open.push_back(id.clone());
        if self.open.len() > OPEN
            && let Some(oldest) = self.open.pop_front()
            && let Some(stored) = self.runs.get_mut(&oldest)
        {
            for part in [&mut stored.results, &mut stored.reviews, &mut stored.files] {
                part.close()?;
            }
        }
        Ok(())
    }
}

impl Stored {
    /// Returns the time of the run, which executions are ordered by.
    fn begin(&self) -> Option<DateTime<Utc>> {
        earliest(self.run.start, self.first).or(self.run.end)
    }

    /// Returns the name of the test set.
    fn set(&self) -> String {
        name(if self.run.set.trim().is_empty() { &self.run.key } else { &self.run.set })
    }

    /// Returns the execution as a record.
    fn header(&self, id: &Name) -> Map<String, Value> {
        let Run { end, tags, build, url, .. } = &self.run;
        let begin = self.begin();
        let end = (*end).max(self.last).max(begin);
        let set = self.set();
        let fields = [
            ("Id", Some(id.to_string())),
            ("Key", Some(id.to_string())),
            ("TestSetId", Some(set.clone())),
            ("TestSetName", Some(set)),
            ("Status", Some("Completed".to_owned())),
            ("Tags", Some(tags.clone())),
            ("Build", build.clone()),
            ("CiUrl", url.clone()),
            ("RequestTime", begin.map(stamp)),
            ("CompletionDateTime", end.map(stamp)),
        ];
        let given = fields.into_iter().filter_map(|(field, text)| Some((field, text?)));
        given.map(|(field, text)| (field.to_owned(), text.into())).collect()
    }
}

/// Returns the earlier of two times; that which is known.
fn earliest(one: Option<DateTime<Utc>>, other: Option<DateTime<Utc>>) -> Option<DateTime<Utc>> {
    one.into_iter().chain(other).min()
}

fn digest(parts: &[&str]) -> u64 {
    let mut hasher = DefaultHasher::new();
    parts.hash(&mut hasher);
    hasher.finish()
}
