//! Launches of ReportPortal: the requests that its agents send while tests run, in any order.
//!
//! An agent starts and finishes items, which form trees, and logs texts and files to them. Items are
//! read once their launch has ended: only then is it known which of them are tests and which contain
//! tests or are steps.

mod attempt;
mod found;
mod identity;
mod item;
mod tree;

use std::collections::HashMap;

use assay_proto::{TestResult, worst};
use serde_json::Value;

pub use self::identity::{hook_identifier, identifier};
use self::{
    item::{Item, Log},
    tree::Tree,
};
use crate::{
    Attempt, Nature, Problem, Test,
    json::parse_lenient,
    limits::TEXT,
    texts::{keep_beginning, keep_end},
};

/// Maximum size of the complete logs of all items, in bytes. Of further logs, only what steps show
/// is kept.
const LOGS: usize = 32 << 20;

/// Memory that an item takes beside its texts, in bytes.
const ITEM: usize = 600;

/// Parts of the names of agents that report the steps of a scenario as items like tests.
const GHERKIN: [&str; 7] =
    ["behave", "cucumber", "gauge", "jbehave", "karate", "reqnroll", "specflow"];

/// Id of an item.
pub type ItemId = u128;

/// The requests of a launch.
pub struct Launch {
    items: HashMap<ItemId, Box<Item>>,
    /// Whether steps of scenarios are items like tests.
    is_gherkin: bool,
    /// Whether tests were run again, and reported to the same launch.
    has_reruns: bool,
    /// Logs that belong to no item.
    log: String,
    /// Number of logs that belong to no item.
    logs: usize,
    /// Size of the complete logs that are still kept.
    room: usize,
    /// Result that agents report of the launch.
    result: Option<TestResult>,
    /// Number of requests that cannot be read.
    lost: usize,
    /// About how much memory all of it takes, in bytes.
    size: usize,
}

/// The contents of a launch.
pub struct Launched {
    /// The tests, each with its attempts.
    pub tests: Vec<Test>,
    /// Items that have not finished, and could still turn out to contain tests. After the end of the
    /// launch, they are tests that were aborted.
    pub uncertain: Vec<Test>,
    /// The texts that belong to no test. Empty if there are none.
    pub log: String,
    /// Number of logs that belong to no item.
    pub logs: usize,
}

impl Launch {
    /// Returns a launch without items. `agent` is its attribute of that name, which determines how
    /// scenarios are read.
    pub fn of_agent(agent: &str) -> Self {
        let agent = agent.to_ascii_lowercase();
        Self {
            items: HashMap::new(),
            is_gherkin: GHERKIN.iter().any(|name| agent.contains(name)),
            has_reruns: false,
            log: String::new(),
            logs: 0,
            room: LOGS,
            result: None,
            lost: 0,
            size: 0,
        }
    }

    /// Returns about how much memory the requests take so far, in bytes. Its tests will take as much
    /// again.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the launch with tests that were run again: those with the same identity, below items with
    /// the same names, are attempts at one test.
    #[must_use]
    pub fn with_reruns(self, has_reruns: bool) -> Self {
        Self { has_reruns, ..self }
    }

    /// Adds a request that starts an item. Repeating it has no effect.
    pub fn start(&mut self, id: ItemId, parent: Option<ItemId>, body: &[u8]) {
        self.size += body.len();
        let Some(body) = self.read(body) else { return };
        let sequence = self.items.len();
        self.item(id).start(parent, sequence, &body);
    }

    /// Adds a request that finishes an item. The first one counts.
    pub fn finish(&mut self, id: ItemId, body: &[u8]) {
        self.size += body.len();
        if let Some(body) = self.read(body) {
            self.item(id).finish(&body);
        }
    }

    /// Adds a request that finishes the launch. Launches that were merged into one have several: the worst
    /// status counts. If tests were run again, the last one counts.
    pub fn finish_launch(&mut self, body: &[u8]) {
        let Some(result) = self.read(body).and_then(|body| item::result_of(&body)) else { return };
        let before = self.result.filter(|_| !self.has_reruns);
        self.result = Some(before.map_or(result, |before| worst(before, result)));
    }

    /// Adds a log of an item, or of the launch. The service that received it has replaced the name of
    /// its file by that of an artifact.
    pub fn log(&mut self, item: Option<ItemId>, body: &[u8]) {
        let Some(log) = self.read(body).map(|body| Log::of(&body)) else { return };
        if let Some(id) = item {
            let mut room = self.room;
            self.size += self.item(id).log(log, &mut room);
            self.room = room;
        } else {
            self.logs += 1;
            let before = self.log.len();
            keep_beginning(&mut self.log, &log.line(), LOGS);
            self.size += self.log.len() - before;
        }
    }

    /// Parses a request. One that cannot be read costs no other.
    fn read(&mut self, body: &[u8]) -> Option<Value> {
        let parsed = parse_lenient(body).ok();
        self.lost += usize::from(parsed.is_none());
        parsed
    }

    fn item(&mut self, id: ItemId) -> &mut Item {
        let Self { items, size, .. } = self;
        items.entry(id).or_insert_with(|| {
            *size += ITEM;
            Box::default()
        })
    }

    /// Returns the tests, and the texts that belong to none.
    pub fn end(self) -> Launched {
        let Self { items, is_gherkin, has_reruns, mut log, logs, result, lost, .. } = self;
        let mut tree = Tree::of(items, is_gherkin, has_reruns);
        let (mut tests, uncertain) = tree.tests();
        tests.extend(tree.failures());
        if lost > 0 {
            let message = format!("{lost} requests of the agent could not be read.");
            tests.push(of_launch(Nature::Error, message));
        }
        let is_red = |attempt: &Attempt| Nature::of(attempt.result).is_some();
        let has_failed = tests.iter().flat_map(|test| &test.attempts).any(is_red);
        if let Some(nature) = result.and_then(Nature::of).filter(|_| !has_failed) {
            let message = "The launch failed, but none of its tests did.".to_owned();
            tests.push(of_launch(nature, message));
        }
        for item in tree.outside() {
            let mut text = item.texts();
            if !text.is_empty() {
                let name = if item.name.is_empty() { "Unknown item" } else { &item.name };
                text = format!("{name}:\n{text}\n");
            }
            keep_beginning(&mut log, &text, LOGS);
        }
        Launched { tests, uncertain, log, logs }
    }
}

/// Returns the entry for what is not about an item.
fn of_launch(nature: Nature, message: String) -> Test {
    let problem = Problem { nature, message, ..Problem::default() };
    Test { attempts: vec![Attempt::with(vec![problem])], ..Test::default() }.of_run()
}

/// Returns a text of bounded size, which ends with `more`.
fn with_end(mut text: String, more: &str) -> String {
    keep_end(&mut text, more, TEXT);
    text
}
