//! Launches of ReportPortal: the requests that its agents send while tests run, in any order.
//!
//! An agent starts and finishes items, which form trees, and logs texts and files to them. Items are
//! read once their launch has ended: only then is it known which of them are tests and which contain
//! tests or are steps.

mod attempt;
mod item;
mod tree;

use std::collections::HashMap;

use assay_proto::Fault;
use serde_json::Value;

use self::{
    item::{Item, Log},
    tree::Tree,
};
use crate::{
    Test,
    limits::TEXT,
    texts::{keep_beginning, keep_end},
};

/// Maximum size of the complete logs of all items, in bytes. Of further logs, only what steps show
/// is kept.
const LOGS: usize = 32 << 20;

/// Parts of the names of agents that report the steps of a scenario as items like tests.
const GHERKIN: [&str; 7] =
    ["behave", "cucumber", "gauge", "jbehave", "karate", "reqnroll", "specflow"];

/// Id of an item.
pub type ItemId = u128;

/// The requests of a launch.
pub struct Launch {
    items: HashMap<ItemId, Item>,
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
        }
    }

    /// Returns the launch with tests that were run again: those with the same identity are attempts at
    /// one test.
    #[must_use]
    pub fn with_reruns(self, has_reruns: bool) -> Self {
        Self { has_reruns, ..self }
    }

    /// Adds a request that starts an item. Repeating it has no effect.
    pub fn start(&mut self, id: ItemId, parent: Option<ItemId>, body: &[u8]) -> Result<(), Fault> {
        let (body, sequence) = (json(body)?, self.items.len());
        self.item(id).start(parent, sequence, &body);
        Ok(())
    }

    /// Adds a request that finishes an item. The first one counts.
    pub fn finish(&mut self, id: ItemId, body: &[u8]) -> Result<(), Fault> {
        let body = json(body)?;
        self.item(id).finish(&body);
        Ok(())
    }

    /// Adds a log of an item, or of the launch. The service that received it has replaced the name of
    /// its file by that of an artifact.
    pub fn log(&mut self, item: Option<ItemId>, body: &[u8]) -> Result<(), Fault> {
        let log = Log::of(&json(body)?);
        if let Some(id) = item {
            let item = self.items.entry(id).or_default();
            item.log(log, &mut self.room);
        } else {
            self.logs += 1;
            keep_beginning(&mut self.log, &log.line(), LOGS);
        }
        Ok(())
    }

    fn item(&mut self, id: ItemId) -> &mut Item {
        self.items.entry(id).or_default()
    }

    /// Returns the tests, and the texts that belong to none.
    pub fn end(self) -> Launched {
        let Self { items, is_gherkin, has_reruns, mut log, logs, .. } = self;
        let mut tree = Tree::of(items, is_gherkin, has_reruns);
        let (tests, uncertain) = tree.tests();
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

fn json(body: &[u8]) -> Result<Value, Fault> {
    serde_json::from_slice(body)
        .map_err(|error| Fault::Malformed(format!("the body is not valid JSON: {error}")))
}

/// Returns a text of bounded size, which ends with `more`.
fn with_end(mut text: String, more: &str) -> String {
    keep_end(&mut text, more, TEXT);
    text
}
