//! Writes what readers pass on to an export, whatever its order.

mod line;
mod notes;
mod stored;

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque, hash_map::DefaultHasher},
    fs::File,
    hash::{Hash, Hasher},
    io::Read,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use assay_digest::hex;
use aws_lc_rs::digest::{self, SHA256};
use chrono::Utc;
use serde_json::{Value, json};

use self::{line::result_line, notes::Notes, stored::Stored};
use super::{
    model::{Case, Outcome, Run, Verdict},
    text::{clipped, identifier, key, name},
};
use crate::folder::{EXECUTIONS, Folder, Name, Part, Place, TEST_CASES, TEST_SETS};

/// Maximum number of files of results that are open.
const OPEN: usize = 64;

/// Maximum length of a ticket, in characters.
const LONGEST_TICKET: usize = 255;

/// An export that files of a tool are converted to.
pub(super) struct Store {
    tool: &'static str,
    /// The folders and files that the files of the tool are found in.
    from: Vec<PathBuf>,
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
    notes: Notes,
}

impl Store {
    pub(super) fn create(tool: &'static str, folder: &Path, from: &[PathBuf]) -> Result<Self> {
        let folder = Folder::open(folder)?;
        Ok(Self {
            tool,
            from: from.to_vec(),
            cases: folder.begin(&TEST_CASES)?,
            folder,
            identifiers: HashSet::new(),
            sets: BTreeMap::new(),
            runs: BTreeMap::new(),
            open: VecDeque::new(),
            counts: HashMap::new(),
            notes: Notes::default(),
        })
    }

    /// Adds a test case, unless there is one with its identifier.
    #[expect(clippy::needless_pass_by_value, reason = "readers make one for the store")]
    pub(super) fn case(&mut self, case: Case) -> Result<()> {
        let id = identifier(&case.identifier);
        if !self.identifiers.insert(slot(&[&id])) {
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
            self.notes.unknown(status);
        }
        let id = self.id(run)?;
        if !self.runs.contains_key(&id) {
            let run = Run { key: run.to_owned(), ..Run::default() };
            self.run(run)?;
        }
        self.keep_open(&id)?;
        let case = identifier(&outcome.identifier);
        let slot = slot(&[id.as_str(), &case, &outcome.variant]);
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
        stored.extend(outcome.start, outcome.end);
        stored.results.line(&line)?;
        if !outcome.ticket.trim().is_empty() {
            let ticket: String = name(&outcome.ticket).chars().take(LONGEST_TICKET).collect();
            stored.reviews.line(&json!({
                "TestCaseIdentifier": case, "Status": "InReview", "Ticket": ticket,
            }))?;
        }
        Ok(())
    }

    /// Completes the export. Returns notes for users. Drafts of runs that are left out are
    /// no part of it.
    pub(super) fn complete(mut self) -> Result<Vec<String>> {
        self.folder.finish(self.cases)?;
        #[expect(clippy::disallowed_methods, reason = "an import has the clock of its machine")]
        let now = Utc::now();
        let (mut notes, mut runs) = (self.notes, Vec::new());
        for (id, stored) in self.runs {
            if let Some(reason) = stored.left_out(now) {
                notes.leave_out(reason);
                continue;
            }
            self.sets.entry(stored.set()).or_default();
            runs.push((id, stored));
        }
        let mut sets = self.folder.begin(&TEST_SETS)?;
        for (set, cases) in &self.sets {
            let mut record = json!({"Id": set, "Name": set});
            // The members of a set that only runs name are the test cases that have results in them.
            if !cases.is_empty() {
                record["TestCases"] = cases.clone().into();
            }
            sets.line(&record)?;
        }
        self.folder.finish(sets)?;
        runs.sort_by(|(a, one), (b, other)| (one.begin(), a).cmp(&(other.begin(), b)));
        let mut executions = self.folder.begin(&EXECUTIONS)?;
        for (id, stored) in runs {
            if stored.is_in_future(now) {
                notes.in_future();
            }
            executions.line(&stored.header(&id, now))?;
            self.folder.finish(stored.results)?;
            self.folder.finish(stored.reviews)?;
            self.folder.finish(stored.files)?;
        }
        self.folder.finish(executions)?;
        self.folder.complete(self.tool)?;
        Ok(notes.into_lines())
    }

    /// Returns the key of a run that a file has, and to which its tool gives no id: from the path below the
    /// folder and the contents. Files of other folders, and later ones of the same name, are other runs.
    pub(super) fn key_of(&self, file: &Path) -> Result<String> {
        let below = self.from.iter().find_map(|from| file.strip_prefix(from).ok());
        let path = below.filter(|path| !path.as_os_str().is_empty());
        let path = path.or(file.file_name().map(Path::new)).unwrap_or(file);
        let path = path.to_string_lossy().replace('\\', "/");
        let mut read =
            File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
        let (mut contents, mut chunk) = (digest::Context::new(&SHA256), vec![0; 1 << 16]);
        loop {
            let count = read.read(&mut chunk)?;
            if count == 0 {
                return Ok(format!("{path}\n{}", hex(contents.finish().as_ref())));
            }
            contents.update(&chunk[..count]);
        }
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
        Ok(Stored::new(run, [results, reviews, files]))
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

fn slot(parts: &[&str]) -> u64 {
    let mut hasher = DefaultHasher::new();
    parts.hash(&mut hasher);
    hasher.finish()
}
