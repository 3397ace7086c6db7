//! Fixtures: what ran before and after tests.

use std::collections::HashMap;

use serde::Deserialize;

use super::outcome::ReportedStep;
use crate::{
    Step,
    json::{List, Text},
};

/// Maximum number of references from tests to fixtures. Further ones are not shown.
const MOST_REFERENCES: usize = 500_000;

/// Maximum number of fixtures of a container, in front of its tests and behind them, each.
const MOST_FIXTURES: usize = 20;

/// Maximum number of tests of a container.
const MOST_CHILDREN: usize = 100_000;

/// A file with fixtures.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Container {
    /// Ids of results.
    children: List<Text<64>, MOST_CHILDREN>,
    befores: List<ReportedStep, MOST_FIXTURES>,
    afters: List<ReportedStep, MOST_FIXTURES>,
}

/// The fixtures of a container, as steps.
struct Group {
    before: Vec<Step>,
    after: Vec<Step>,
}

/// The fixtures of all tests.
#[derive(Default)]
pub(super) struct Fixtures {
    groups: Vec<Group>,
    /// Indexes of groups by the ids of results.
    of_results: HashMap<String, Vec<usize>>,
    references: usize,
}

impl Fixtures {
    pub(super) fn add(&mut self, container: Container) {
        let steps = |kind: &str, fixtures: &[ReportedStep]| {
            let mut steps: Vec<Step> = fixtures.iter().map(|fixture| fixture.step(0)).collect();
            for step in &mut steps {
                step.name = format!("{kind}: {}", step.name);
            }
            steps
        };
        let before = steps("Before", &container.befores.0);
        let after = steps("After", &container.afters.0);
        if before.is_empty() && after.is_empty() {
            return;
        }
        for child in container.children.0 {
            if self.references < MOST_REFERENCES {
                self.references += 1;
                self.of_results.entry(child.0).or_default().push(self.groups.len());
            }
        }
        self.groups.push(Group { before, after });
    }

    /// Returns the fixtures before and after a result.
    pub(super) fn of(
        &self,
        result: &str,
    ) -> (impl Iterator<Item = &Step>, impl Iterator<Item = &Step>) {
        let groups = self.of_results.get(result).map_or(&[][..], Vec::as_slice).iter();
        let groups = groups.map(|index| &self.groups[*index]);
        let before = groups.clone().flat_map(|group| &group.before);
        (before, groups.flat_map(|group| &group.after))
    }
}
