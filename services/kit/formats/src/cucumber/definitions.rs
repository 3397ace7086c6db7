//! Definitions in front of the results: features, scenarios and their steps.

use std::collections::HashMap;

use assay_proto::Fault;
use serde::Deserialize;

use crate::{
    Property, Test,
    fault::excessive,
    json::{List, Text},
    limits::{MESSAGE, MOST_LABELS, MOST_STEPS, STEP},
};

/// Maximum size of the definitions that are not used yet, in bytes.
const LARGEST: usize = 32 << 20;

/// Maximum number of scenarios of a feature, and of examples of a scenario.
const MOST_CHILDREN: usize = 10_000;

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct GherkinDocument {
    uri: Text<MESSAGE>,
    feature: Option<Feature>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Feature {
    name: Text<MESSAGE>,
    children: List<Child, MOST_CHILDREN>,
}

/// A scenario, or a rule with scenarios.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Child {
    scenario: Option<Scenario>,
    rule: Option<Rule>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Rule {
    children: List<Child, MOST_CHILDREN>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Scenario {
    examples: List<Examples, MOST_CHILDREN>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Examples {
    table_header: Option<Row>,
    table_body: List<Row, MOST_CHILDREN>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Row {
    id: Text<64>,
    cells: List<Cell, MOST_LABELS>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Cell {
    value: Text<MESSAGE>,
}

/// A scenario, or a row of its examples, with its steps.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Pickle {
    id: Text<64>,
    uri: Text<MESSAGE>,
    name: Text<MESSAGE>,
    ast_node_ids: List<Text<64>, 8>,
    steps: List<PickleStep, MOST_STEPS>,
    tags: List<Tag, MOST_LABELS>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PickleStep {
    id: Text<64>,
    text: Text<STEP>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Tag {
    name: Text<MESSAGE>,
}

/// A pickle with the hooks around its steps.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct TestCase {
    id: Text<64>,
    pickle_id: Text<64>,
    test_steps: List<TestStep, MOST_STEPS>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TestStep {
    id: Text<64>,
    pickle_step_id: Text<64>,
}

/// The definitions so far.
#[derive(Default)]
pub(super) struct Definitions {
    /// Names of features by file.
    features: HashMap<String, String>,
    /// Values of rows of examples by id.
    rows: HashMap<String, Vec<Property>>,
    pickles: HashMap<String, Pickle>,
    cases: HashMap<String, TestCase>,
    /// Size of all in bytes.
    size: usize,
}

impl Definitions {
    pub(super) fn add_document(&mut self, document: GherkinDocument) {
        let Some(feature) = document.feature else { return };
        self.size += document.uri.0.len() + feature.name.0.len() + 64;
        self.features.insert(document.uri.0, feature.name.0);
        self.add_children(feature.children.0);
    }

    fn add_children(&mut self, children: Vec<Child>) {
        for Child { scenario, rule } in children {
            // Rules are not nested within each other.
            self.add_children(rule.map(|rule| rule.children.0).unwrap_or_default());
            for Examples { table_header, table_body } in
                scenario.map(|scenario| scenario.examples.0).unwrap_or_default()
            {
                let names = table_header.unwrap_or_default().cells.0;
                for Row { id, cells } in table_body.0 {
                    let values: Vec<Property> = names
                        .iter()
                        .zip(cells.0)
                        .map(|(name, cell)| Property::new(&name.value.0, &cell.value.0))
                        .collect();
                    self.size += size_of_row(&values);
                    self.rows.insert(id.0, values);
                }
            }
        }
    }

    pub(super) fn add_pickle(&mut self, pickle: Pickle) {
        self.size += pickle.size();
        self.pickles.insert(pickle.id.0.clone(), pickle);
    }

    pub(super) fn add_case(&mut self, case: TestCase) {
        self.size += case.size();
        self.cases.insert(case.id.0.clone(), case);
    }

    /// Refuses definitions that are too large.
    pub(super) fn check(&self, format: &str, place: &str) -> Result<(), Fault> {
        if self.size > LARGEST {
            let problem = format!(
                "it defines more than {} MiB of scenarios in front of their results",
                LARGEST >> 20
            );
            return Err(excessive(format, place, problem));
        }
        Ok(())
    }

    /// Returns a test without attempts.
    pub(super) fn test(&self, case: &str) -> Test {
        let pickle = self.cases.get(case).and_then(|case| self.pickles.get(&case.pickle_id.0));
        let Some(pickle) = pickle else { return Test::default() };
        let row = pickle.ast_node_ids.0.iter().find_map(|id| self.rows.get(&id.0));
        let feature = self.features.get(&pickle.uri.0);
        let tags = pickle.tags.0.iter().map(|tag| tag.name.0.trim_start_matches('@'));
        Test {
            class: feature.map_or(pickle.uri.0.as_str(), |name| name.trim()).to_owned(),
            name: pickle.name.0.trim().to_owned(),
            parameters: row.cloned().unwrap_or_default(),
            labels: tags.map(|tag| Property::new("tag", tag)).collect(),
            ..Test::default()
        }
    }

    /// Returns the text of a step, and whether it is a hook.
    pub(super) fn step(&self, case: &str, step: &str) -> (String, bool) {
        let hook = || ("Hook".to_owned(), true);
        let Some(case) = self.cases.get(case) else { return hook() };
        let found = case.test_steps.0.iter().find(|found| found.id.0 == step);
        let id = found.map_or("", |step| &step.pickle_step_id.0);
        let pickle = self.pickles.get(&case.pickle_id.0);
        let steps = pickle.map_or(&[][..], |pickle| &pickle.steps.0);
        let found = steps.iter().find(|step| !id.is_empty() && step.id.0 == id);
        found.map_or_else(hook, |step| (step.text.0.clone(), false))
    }

    /// Returns the test cases that have not ended, in a stable order.
    pub(super) fn unstarted(&self) -> Vec<String> {
        let mut cases: Vec<String> = self.cases.keys().cloned().collect();
        cases.sort_unstable();
        cases
    }

    /// Removes a test case that has ended.
    pub(super) fn remove(&mut self, case: &str) {
        let Some(case) = self.cases.remove(case) else { return };
        self.size -= case.size();
        let Some(pickle) = self.pickles.remove(&case.pickle_id.0) else { return };
        self.size -= pickle.size();
        for id in &pickle.ast_node_ids.0 {
            if let Some(row) = self.rows.remove(&id.0) {
                self.size -= size_of_row(&row);
            }
        }
    }
}

impl Pickle {
    fn size(&self) -> usize {
        let steps = self.steps.0.iter().map(|step| step.id.0.len() + step.text.0.len() + 64);
        let tags = self.tags.0.iter().map(|tag| tag.name.0.len() + 32);
        300 + self.name.0.len() + self.uri.0.len() + steps.chain(tags).sum::<usize>()
    }
}

impl TestCase {
    fn size(&self) -> usize {
        let steps = self.test_steps.0.iter();
        200 + steps.map(|step| step.id.0.len() + step.pickle_step_id.0.len() + 64).sum::<usize>()
    }
}

fn size_of_row(values: &[Property]) -> usize {
    100 + values.iter().map(|value| value.name.len() + value.value.len() + 48).sum::<usize>()
}
