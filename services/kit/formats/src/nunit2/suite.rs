//! A suite while its element is open, and the class of its tests.

use crate::{
    Nature, Problem, Property, Test,
    limits::{MESSAGE, MOST_LABELS},
    names::{named, shortened},
    sink::{Claims, Tally, count},
    texts::beginning,
    xml::{Attributes, Path},
};

/// Name of the entry of a setup that fails.
pub(super) const SETUP: &str = "TestFixtureSetUp";

/// Messages of suites whose tests failed.
const OF_TESTS: [&str; 2] = ["Child test failed", "One or more child tests had errors"];

/// A suite, or the run around suites.
#[derive(Default)]
pub(super) struct Suite {
    /// Of an assembly or a file, the name without its folders.
    pub(super) name: String,
    kind: String,
    is_file: bool,
    pub(super) tags: Vec<Property>,
    /// Its own failure, if it has one.
    problem: Option<Problem>,
    pub(super) claims: Claims,
    /// The tests that were passed on before it.
    pub(super) start: Tally,
}

impl Suite {
    /// Returns the run. Tests that are not run may count in addition, and may lack elements.
    pub(super) fn of_run(attributes: &Attributes<'_>, start: Tally) -> Self {
        let mut run = Self { is_file: true, start, ..Self::default() };
        attributes.each(|name, value| match name {
            "total" => run.claims.tests = count(value),
            "errors" | "failures" => run.claims.add_failures(value),
            _ => {}
        });
        run
    }

    pub(super) fn new(attributes: &Attributes<'_>, start: Tally) -> Self {
        let mut suite = Self { start, ..Self::default() };
        let mut is_failed = None;
        attributes.each(|name, value| match name {
            "name" => value.trim().clone_into(&mut suite.name),
            "type" => suite.kind = shortened(value),
            "result" => is_failed = failure(value),
            "success" if value.eq_ignore_ascii_case("false") => {
                // The result is more exact.
                is_failed = is_failed.or(Some(Nature::Failure));
            }
            _ => {}
        });
        let path = suite.name.clone();
        suite.is_file = matches!(suite.kind.as_str(), "Assembly" | "Test Project" | "Project")
            || [".ps1", ".dll", ".exe", ".nunit"].iter().any(|end| path.ends_with(end));
        let name = if suite.is_file { path.rsplit(['/', '\\']).next() } else { None };
        suite.name = shortened(name.unwrap_or(&path));
        let is_skipped = attributes.get("executed").is_some_and(|value| value == "False");
        let nature = is_failed.filter(|nature| !is_skipped || *nature == Nature::Error);
        suite.problem = nature.map(|nature| Problem { nature, ..Problem::default() });
        suite.claims.failures = nature.map(|_| 1);
        suite
    }

    /// Adds a tag, which its tests have.
    pub(super) fn tag(&mut self, tag: Property) {
        if self.tags.len() < MOST_LABELS {
            self.tags.push(tag);
        }
    }

    /// Reads the text of an element of its failure.
    pub(super) fn text(&mut self, path: &Path, text: &str) {
        let Some(problem) = &mut self.problem else { return };
        match (path.parent(), path.name()) {
            ("failure" | "reason", "message") => problem.message = beginning(text, MESSAGE),
            ("failure", "stack-trace") => text.clone_into(&mut problem.text),
            _ => {}
        }
    }

    /// Returns its own failure, with the name of what failed. Versions of NUnit name it differently.
    pub(super) fn failure(&self) -> Option<(&'static str, Problem)> {
        let problem = self.problem.as_ref().filter(|problem| {
            !problem.message.is_empty() && !OF_TESTS.contains(&problem.message.as_str())
        })?;
        let begins = |word: &str| problem.message.trim_start().starts_with(word);
        let hook = if begins("SetUp") || begins("TestFixtureSetUp") {
            SETUP
        } else if begins("TearDown") || begins("TestFixtureTearDown") {
            "TestFixtureTearDown"
        } else {
            ""
        };
        Some((hook, problem.clone()))
    }

    /// Returns whether the suite has the cases of one test.
    fn is_test(&self) -> bool {
        matches!(self.kind.as_str(), "ParameterizedTest" | "GenericMethod" | "Theory")
    }

    /// Returns whether the suite has the fixtures of one class.
    fn is_class(&self) -> bool {
        matches!(self.kind.as_str(), "ParameterizedFixture" | "GenericFixture")
    }
}

/// Returns the nature of a result that fails its suite.
fn failure(result: &str) -> Option<Nature> {
    Some(match result {
        "Failure" | "Failed" => Nature::Failure,
        "Error" | "NotRunnable" | "Invalid" => Nature::Error,
        "Cancelled" => Nature::Abortion,
        _ => return None,
    })
}

/// Returns the names of the suites around a test, without those of one class or test.
pub(super) fn titles(suites: &[Suite]) -> Vec<String> {
    let titles = suites.iter().filter(|suite| !suite.is_test() && !suite.is_class());
    titles.map(|suite| suite.name.clone()).filter(|name| !name.is_empty()).collect()
}

/// Returns the class of the innermost suite: its name with those of namespaces.
pub(super) fn fixture(suites: &[Suite]) -> String {
    let is_part = |suite: &&Suite| {
        let kind = suite.kind.as_str();
        matches!(kind, "Namespace" | "TestFixture" | "SetUpFixture" | "") && !suite.is_file
    };
    // Up to version 2.4, suites have no type.
    let has_namespaces = suites.iter().any(|suite| suite.kind == "Namespace")
        || suites.iter().all(|suite| suite.kind.is_empty());
    let mut names: Vec<&str> =
        suites.iter().filter(is_part).map(|suite| suite.name.as_str()).collect();
    if !has_namespaces {
        // The name of a block of Pester has those around it.
        names.drain(..names.len().saturating_sub(1));
    }
    named(&names.join("."))
}

/// Splits the name of a test. Its class is the longest one that the suites around it make, or else the
/// part in front of the last dot that is not in arguments.
pub(super) fn class_of<'n>(name: &'n str, suites: &[Suite]) -> (&'n str, &'n str) {
    let suites: Vec<&Suite> = suites
        .iter()
        .filter(|suite| !suite.is_test() && !suite.is_class() && !suite.is_file)
        .filter(|suite| !suite.name.is_empty())
        .collect();
    for end in (1..=suites.len()).rev() {
        for start in 0..end {
            let rest = suites[start..end].iter().try_fold(name, |rest, suite| {
                rest.strip_prefix(suite.name.as_str())?.strip_prefix('.')
            });
            if let Some(own) = rest.filter(|own| !own.is_empty()) {
                return (&name[..name.len() - own.len() - 1], own);
            }
        }
    }
    let end = name.find(['(', '"', ' ']).unwrap_or(name.len());
    name[..end].rfind('.').map_or(("", name), |dot| (&name[..dot], &name[dot + 1..]))
}

/// Makes the arguments of a fixture a parameter, as class and name in later versions lack them.
pub(super) fn separate_arguments(test: &mut Test, suites: &[Suite]) {
    if !suites.iter().any(Suite::is_class) {
        return;
    }
    let split = test.class.strip_suffix(')').and_then(|class| class.split_once('('));
    let Some((class, arguments)) = split else { return };
    test.parameters.push(Property::new("Arguments", arguments));
    test.class = class.to_owned();
}
