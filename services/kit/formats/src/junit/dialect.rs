//! Rules for tools that use elements in ways of their own.

use assay_proto::{TestResult, worst};

use crate::{Attempt, Property, Test, limits::MOST_PROBLEMS, values::shortened, xml::Attributes};

/// Attributes of the root element that only Playwright writes in this way.
const PLAYWRIGHT: [&str; 7] = ["id", "name", "tests", "failures", "skipped", "errors", "time"];

/// A tool that needs rules of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// The test runner of Node: the class is always `test`, and the suites identify a test.
    Node,
    /// Playwright: the host name is the project, such as a browser.
    Playwright,
    /// Pytest: attempts are tests of the same name.
    Pytest,
    Other,
}

impl Dialect {
    /// Returns the dialect by the root element.
    pub(super) fn of(root: &str, attributes: &Attributes<'_>) -> Self {
        let (mut names, mut is_pytest) = (Vec::new(), false);
        attributes.each(|name, value| {
            names.push(name.to_owned());
            is_pytest |= name == "name" && value == "pytest tests";
        });
        match root {
            "testsuites" if names.is_empty() => Self::Node,
            "testsuites" if names == PLAYWRIGHT => Self::Playwright,
            "testsuites" if is_pytest => Self::Pytest,
            _ => Self::Other,
        }
    }

    /// Returns the dialect by the name of the first suite. Older versions of pytest identify
    /// themselves only there.
    pub(super) fn within(self, suite: &str) -> Self {
        let is_pytest = suite == "pytest" && matches!(self, Self::Other | Self::Node);
        if is_pytest { Self::Pytest } else { self }
    }

    /// Completes the identity of a test.
    pub(super) fn identify(self, test: &mut Test, host: &str) {
        match self {
            Self::Node if test.class == "test" => test.class = shortened(&test.suites.join(" > ")),
            Self::Playwright if !host.is_empty() => {
                test.parameters.push(Property::new("Project", host));
            }
            _ => {}
        }
    }
}

/// Returns whether two tests of a pytest report are the same.
pub(super) fn is_same(one: &Test, other: &Test) -> bool {
    (&one.suites, &one.class, &one.name) == (&other.suites, &other.class, &other.name)
}

/// Joins a test and the next element of the same name. An element without problems is a rerun, of
/// which pytest reports nothing else. After one with a failure, the next one has the error of its
/// teardown.
pub(super) fn join(test: &mut Test, next: Test) {
    let Some(last) = test.attempts.last_mut() else { return };
    let more = next.attempts.into_iter().next().unwrap_or_default();
    (test.labels, test.links) = (next.labels, next.links);
    if last.problems.is_empty() {
        if last.result == TestResult::Passed {
            let (start, seconds) = (last.start, last.seconds);
            *last = Attempt { start, seconds, ..Attempt::unreported() };
        }
        (test.start, test.seconds) = (next.start, next.seconds);
        test.push(more);
    } else {
        last.result = worst(last.result, more.result);
        last.seconds += more.seconds;
        test.seconds += next.seconds;
        last.problems.extend(more.problems);
        last.problems.truncate(MOST_PROBLEMS);
    }
}
