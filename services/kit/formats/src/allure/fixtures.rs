//! Fixtures: what ran before and after tests.

use std::collections::HashMap;

use assay_proto::Fault;
use serde::Deserialize;

use super::step::{Details, ReportedStep};
use crate::{
    Nature, Problem, Sink, Step, Test,
    json::{List, Name, Text},
    limits::MOST_PROBLEMS,
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
    name: Name,
    /// Ids of results.
    children: List<Text<64>, MOST_CHILDREN>,
    befores: List<ReportedStep, MOST_FIXTURES>,
    afters: List<ReportedStep, MOST_FIXTURES>,
}

/// The fixtures of a container, as steps.
struct Group {
    /// Name of the container.
    name: String,
    before: Vec<Step>,
    after: Vec<Step>,
    /// Whether a result of the container failed, too.
    is_explained: bool,
}

/// Errors outside of all tests, which Allure 3 writes to a file of their own.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Globals {
    errors: List<Details, MOST_PROBLEMS>,
}

/// The fixtures of all tests.
#[derive(Default)]
pub(super) struct Fixtures {
    groups: Vec<Group>,
    /// Indexes of groups by the ids of results.
    of_results: HashMap<String, Vec<usize>>,
    references: usize,
    globals: Vec<Problem>,
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
        let name = container.name.0;
        self.groups.push(Group { name, before, after, is_explained: false });
    }

    pub(super) fn add_globals(&mut self, globals: Globals) {
        let problems = globals.errors.0.into_iter().map(|error| error.problem(Nature::Error));
        self.globals.extend(problems);
        self.globals.truncate(MOST_PROBLEMS);
    }

    /// Notes that a result failed, which explains the failures of its fixtures.
    pub(super) fn explain(&mut self, result: &str) {
        for index in self.of_results.get(result).into_iter().flatten() {
            self.groups[*index].is_explained = true;
        }
    }

    /// Passes on the fixtures that failed although their tests did not, and the errors of the run.
    pub(super) fn finish(self, sink: Sink<'_>) -> Result<(), Fault> {
        for group in self.groups.into_iter().filter(|group| !group.is_explained) {
            for step in group.before.into_iter().chain(group.after) {
                let Some(nature) = Nature::of(step.result) else { continue };
                let problem = Problem { nature, message: step.message, ..Problem::default() };
                let owner = Test { class: group.name.clone(), name: step.name, ..Test::default() };
                sink.add_own(owner, problem)?;
            }
        }
        for problem in self.globals {
            sink.add_own(Test::default().of_run(), problem)?;
        }
        Ok(())
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
