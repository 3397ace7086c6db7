//! Rules for tools that use elements in ways of their own.

use assay_proto::worst;

use super::suite::Suite;
use crate::{
    Property, Retry, Test,
    durations::duration,
    identity::HOOKS,
    limits::MOST_PROBLEMS,
    names::{named, shortened},
    sink::Claims,
    xml::Attributes,
};

/// Attributes of the root element that only Playwright writes in this way.
const PLAYWRIGHT: [&str; 7] = ["id", "name", "tests", "failures", "skipped", "errors", "time"];

/// Attributes of the root element that only mocha-junit-reporter writes in this way, with and without the
/// last one.
const MOCHA: [&str; 5] = ["name", "time", "tests", "failures", "skipped"];

/// Attributes of a suite that only newman writes in this way.
const NEWMAN: [&str; 7] = ["name", "id", "timestamp", "tests", "failures", "errors", "time"];

/// Attributes of a suite that only Gradle writes in this way.
const GRADLE: [&str; 8] =
    ["name", "tests", "skipped", "failures", "errors", "timestamp", "hostname", "time"];

/// Attributes of a suite that the library `junit-report` writes in this way.
const JUNIT_REPORT: [&str; 9] =
    ["id", "name", "package", "tests", "errors", "failures", "hostname", "timestamp", "time"];

/// Attributes of a suite that only doctest writes in this way. The last three depend on its options.
const DOCTEST: [&str; 7] =
    ["name", "errors", "failures", "tests", "time", "timestamp", "doctest_version"];

/// How the names of suites of cucumber-rs begin, which uses that library.
const FEATURE: &str = "Feature: ";

/// A tool that needs rules of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// The test runner of Node: the class is always `test`, and the suites identify a test.
    Node,
    /// Playwright: the host name is the project, such as a browser.
    Playwright,
    /// Pytest: attempts are tests of the same name.
    Pytest,
    /// Gotestsum and Gradle: a failed test that was run again is a test of the same name.
    Rerun,
    /// Catch2, doctest, newman and node-tap: the numbers of a suite count assertions.
    Assertions,
    /// Mocha: only the root element counts skipped tests, which are not listed.
    Mocha,
    /// Qt Test: the failures and errors of a suite count messages, also warnings and those of tests that are known to
    /// fail.
    Qt,
    /// Vitest: tests that did not run are listed like others, with a duration of 0.
    Vitest,
    /// Cucumber for Rust: names have the place of the scenario, and attempts are tests of the same name.
    CucumberRs,
    /// Assay: the name of a test without a class is its whole identifier.
    Assay,
    Other,
}

impl Dialect {
    /// Returns the dialect by the root element.
    pub(super) fn of(root: &str, attributes: &Attributes<'_>) -> Self {
        let (names, is_pytest) = names(attributes, "pytest tests");
        let is_vitest = attributes.get("name").as_deref() == Some("vitest tests");
        match root {
            "testsuites" if names.is_empty() => Self::Node,
            "testsuites" if names == PLAYWRIGHT => Self::Playwright,
            "testsuites" if is_pytest => Self::Pytest,
            "testsuites" if is_vitest => Self::Vitest,
            "testsuites" if names == MOCHA || names == MOCHA[..4] => Self::Mocha,
            "testsuites" if names.iter().any(|name| name == "assertions") => Self::Assertions,
            _ => Self::Other,
        }
    }

    /// Returns the dialect by a suite. Older versions of pytest identify themselves only there.
    pub(super) fn within(self, suite: &Suite, attributes: &Attributes<'_>) -> Self {
        if !matches!(self, Self::Other | Self::Node) {
            return self;
        }
        let (names, _) = names(attributes, "");
        if suite.name == "pytest" {
            Self::Pytest
        } else if names == GRADLE {
            Self::Rerun
        } else if names == JUNIT_REPORT && suite.name.starts_with(FEATURE) {
            Self::CucumberRs
        } else if names == NEWMAN || suite.host == "tbd" || is_of_doctest(&names) {
            Self::Assertions
        } else {
            self
        }
    }

    /// Returns the dialect by a property of a suite. Go-junit-report names the host, and runs no test again: tests
    /// that it repeats are those of `go test -count`.
    pub(super) fn of_property(self, name: &str, suite: &Suite) -> Self {
        match (self, name) {
            (Self::Other | Self::Node, "go.version") if suite.host.is_empty() => Self::Rerun,
            (Self::Other | Self::Node, "Execution") => Self::Assay,
            (Self::Other | Self::Node, "QTestVersion") => Self::Qt,
            _ => self,
        }
    }

    /// Returns what a test of the same name as one before it is.
    pub(super) fn retry(self) -> Retry {
        match self {
            Self::Pytest => Retry::Always,
            Self::Rerun => Retry::AfterFailure,
            _ => Retry::Never,
        }
    }

    /// Returns the numbers of a suite that count tests. Pytest counts subtests, which it does not list.
    pub(super) fn reliable(self, suite: &Suite) -> Claims {
        match self {
            Self::Assertions | Self::Pytest => Claims { tests: None, ..suite.claims },
            Self::Mocha if !suite.is_root => Claims { tests: None, ..suite.claims },
            Self::Qt => Claims { failures: None, ..suite.claims },
            _ => suite.claims,
        }
    }

    /// Completes the identity of a test.
    pub(super) fn identify(self, test: &mut Test, suite: Option<&Suite>) {
        let host = suite.map_or("", |suite| &suite.host);
        match self {
            Self::Node if test.class == "test" => test.class = shortened(&test.suites.join(" > ")),
            Self::Playwright if !host.is_empty() => {
                test.parameters.push(Property::new("Project", host));
            }
            // Features that cannot be parsed are in a suite of their own.
            Self::CucumberRs => {
                if let Some(feature) = suite.and_then(|suite| suite.name.strip_prefix(FEATURE)) {
                    of_scenario(test, feature);
                }
            }
            // The suite is called pytest, and a module that cannot be collected has no class.
            Self::Pytest | Self::Assay if test.class.is_empty() => test.id.clone_from(&test.name),
            _ => {}
        }
        if let Some(suite) = suite.filter(|suite| suite.is_browser) {
            of_browser(test, &suite.name);
        }
        if test.class.is_empty()
            && test.id.is_empty()
            && let Some((hook, class)) = hook_of_class(&test.name)
        {
            (test.class, test.name) = (named(class), named(hook));
        }
        // Nose2 splits the name of a hook at its last dot.
        if test.name.ends_with(')')
            && test.class.contains(" (")
            && let Some((hook, class)) = hook_of_class(&format!("{}.{}", test.class, test.name))
        {
            (test.class, test.name) = (named(class), named(hook));
        }
    }
}

/// Returns the names of attributes, and whether the one called `name` has this value.
fn names(attributes: &Attributes<'_>, expected: &str) -> (Vec<String>, bool) {
    let (mut names, mut has_name) = (Vec::new(), false);
    attributes.each(|name, value| {
        // The namespace of a schema does not count.
        if name != "xsi" {
            names.push(name.to_owned());
        }
        has_name |= name == "name" && value == expected;
    });
    (names, has_name)
}

/// Whether the attributes of a suite are those of doctest.
fn is_of_doctest(names: &[String]) -> bool {
    let mut expected = DOCTEST.iter();
    names.len() >= 4
        && names[..4] == DOCTEST[..4]
        && names.iter().all(|name| expected.any(|one| one == name))
}

/// Makes the browser that the class of a test begins with a parameter, without its version.
fn of_browser(test: &mut Test, browser: &str) {
    let class = test.class.strip_prefix(browser).and_then(|rest| rest.strip_prefix('.'));
    let Some(class) = class.map(ToOwned::to_owned) else { return };
    test.class = class;
    let version = browser.find(|char: char| char.is_ascii_digit()).unwrap_or(browser.len());
    test.parameters.push(Property::new("Browser", browser[..version].trim()));
}

/// Reads the name of a scenario, `Rule: Coins: Scenario: pays: shop.feature:6:3`, and that of its feature,
/// `Shop: shop.feature`. The class and the name become those of the JSON report.
fn of_scenario(test: &mut Test, feature: &str) {
    let feature = match feature.rsplit_once(": ") {
        Some((feature, path)) if path.ends_with(".feature") => feature,
        _ => feature,
    };
    let Some((name, _place)) = test.name.rsplit_once(": ") else { return };
    let name = match name.strip_prefix("Rule: ").and_then(|rule| rule.split_once(": Scenario: ")) {
        Some((rule, scenario)) => format!("{rule} {scenario}"),
        None => name.strip_prefix("Scenario: ").unwrap_or(name).to_owned(),
    };
    (test.class, test.name) = (named(feature), named(&name));
}

/// Splits the name of a hook of Python's unittest, such as `setUpClass (test_shop.Cart)`.
fn hook_of_class(name: &str) -> Option<(&str, &str)> {
    let (hook, class) = name.strip_suffix(')')?.split_once(" (")?;
    let is_name = |text: &str| {
        text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'))
    };
    (HOOKS.contains(&hook) && is_name(class)).then_some((hook, class))
}

/// Returns whether an element of a pytest report has the error of the teardown of the test before it.
pub(super) fn is_teardown(test: &Test, next: &Test) -> bool {
    let is_same =
        (&test.suites, &test.class, &test.name) == (&next.suites, &next.class, &next.name);
    let has_problems = |test: &Test| test.attempts.iter().any(|one| !one.problems.is_empty());
    is_same && has_problems(test) && has_problems(next)
}

/// Adds the error of a teardown.
pub(super) fn add_teardown(test: &mut Test, next: Test) {
    let Some(last) = test.attempts.last_mut() else { return };
    let more = next.attempts.into_iter().next().unwrap_or_default();
    (test.labels, test.links) = (next.labels, next.links);
    last.result = worst(last.result, more.result);
    last.seconds = duration(Some(last.seconds + more.seconds));
    test.seconds = duration(Some(test.seconds + next.seconds));
    last.problems.extend(more.problems);
    last.problems.truncate(MOST_PROBLEMS);
}
