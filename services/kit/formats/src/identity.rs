//! The rule by which two results belong to the same test, instance or attempt. It is the same for all
//! formats, and described in `docs/reports.md`.
//!
//! A test is identified by its class and name. Without a class, the suites around it take its place,
//! or else its file. Its parameters distinguish instances. A result that its tool writes after that of
//! the same instance is a further attempt if the tool retries tests in this way, and another instance
//! otherwise: a failed one then stays failed.

use std::collections::HashMap;

use crate::{Nature, Retry, Test, names::shortened};

/// Version of the rule. A test case that has its identifier by an earlier version gets the one of this
/// version as an alias when it is reported again.
pub const IDENTITY_VERSION: u32 = 2;

/// Names of the hooks of Python's unittest, which had their class behind them by version 1 of the rule.
pub(crate) const HOOKS: [&str; 4] =
    ["setUpClass", "tearDownClass", "setUpModule", "tearDownModule"];

/// Position of a test among those of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Number of the instance among those with the same parameters, from 1.
    pub instance: usize,
    /// Number of attempts that the report has of the instance so far.
    pub attempts: usize,
    /// Number of the first test in the report that is of the same instance, from 0; `None` if it is
    /// this one.
    pub attempt_of: Option<usize>,
    /// Number of the first test of the instance before it with the same parameters; `None` if it is the
    /// first one.
    pub repeats: Option<usize>,
}

/// The instances that a report has so far.
#[derive(Debug, Default)]
pub struct Identities {
    tests: usize,
    /// The number of tests in front of the open file.
    begin: usize,
    /// The last instance of each identifier and variant.
    seen: HashMap<String, Seen>,
    /// The key of the last test.
    key: String,
}

#[derive(Debug)]
struct Seen {
    /// The number of the first test of the last instance.
    test: usize,
    instances: usize,
    attempts: usize,
    has_failed: bool,
    run: usize,
}

impl Identities {
    /// Begins another file. Tools write the attempts of a test into one file: a test that is also in an
    /// earlier one is another instance.
    pub fn begin_file(&mut self) {
        self.begin = self.tests;
    }

    /// Returns the position of the next test, which has this identifier and variant.
    pub fn place(&mut self, test: &Test, identifier: &str, variant: &str) -> Place {
        let number = self.tests;
        self.tests += 1;
        self.key.clear();
        self.key.extend([identifier, "\0", variant]);
        let attempts = test.attempts.len();
        let has_failed = Nature::of(test.result()).is_some();
        let Some(seen) = self.seen.get_mut(&self.key) else {
            let seen = Seen { test: number, instances: 1, attempts, has_failed, run: test.run };
            self.seen.insert(self.key.clone(), seen);
            return Place { instance: 1, attempts: 0, attempt_of: None, repeats: None };
        };
        let is_attempt = match test.retry {
            _ if seen.test < self.begin || seen.run != test.run => false,
            Retry::Never => false,
            Retry::AfterFailure => seen.has_failed,
            Retry::Always => true,
        };
        seen.has_failed = has_failed;
        if is_attempt {
            let (instance, before) = (seen.instances, seen.attempts);
            seen.attempts += attempts;
            let attempt_of = Some(seen.test);
            return Place { instance, attempts: before, attempt_of, repeats: None };
        }
        let repeats = Some(seen.test);
        (seen.test, seen.attempts, seen.run) = (number, attempts, test.run);
        seen.instances += 1;
        Place { instance: seen.instances, attempts: 0, attempt_of: None, repeats }
    }
}

impl Test {
    /// Returns the identifier of the test case, which is the same in every run.
    pub fn identifier(&self) -> String {
        if !self.id.is_empty() {
            return shortened(&self.id);
        }
        let class = if self.class.is_empty() { self.container() } else { self.class.clone() };
        shortened(&dotted(&class, &self.name))
    }

    /// Returns the identifier by version 1 of the rule, if it was another one.
    pub fn former_identifier(&self) -> Option<String> {
        if HOOKS.contains(&self.name.as_str()) && !self.class.is_empty() {
            return Some(shortened(&format!("{} ({})", self.name, self.class)));
        }
        if !self.id.is_empty() || !self.class.is_empty() {
            return None;
        }
        let former = shortened(&dotted("", &self.name));
        (former != self.identifier()).then_some(former)
    }

    /// Returns the suites or the file, which identify a test without a class.
    fn container(&self) -> String {
        let mut suites: Vec<&str> = self.suites.iter().map(|suite| stable(suite)).collect();
        suites.retain(|suite| !suite.is_empty());
        suites.dedup();
        if suites.last() == Some(&self.name.as_str()) {
            suites.pop();
        }
        if suites.is_empty() { self.file.clone() } else { suites.join(" > ") }
    }
}

fn dotted(class: &str, name: &str) -> String {
    match (class, name) {
        ("", "") => "unnamed".to_owned(),
        ("", only) | (only, "") => only.to_owned(),
        (class, name) => format!("{class}.{name}"),
    }
}

/// Returns the name of a suite without the time of the run, which some tools add.
pub(crate) fn stable(name: &str) -> &str {
    let is_time = |char: char| char.is_ascii_digit() || matches!(char, '-' | ':' | 'T' | '.' | '_');
    let end = name.trim_end_matches('Z').trim_end_matches(is_time).len();
    let digits = name[end..].bytes().filter(u8::is_ascii_digit).count();
    if digits >= 14 { name[..end].trim_end_matches(['-', '_', ' ']) } else { name }
}

#[cfg(test)]
mod tests {
    use assay_proto::TestResult::{Failed, Passed};

    use super::*;
    use crate::Attempt;

    fn test(suites: &[&str], class: &str, name: &str) -> Test {
        let suites = suites.iter().map(|suite| (*suite).to_owned()).collect();
        Test { suites, class: class.to_owned(), name: name.to_owned(), ..Test::default() }
    }

    #[test]
    fn suites_and_files_identify_tests_without_a_class() {
        for (test, identifier, former) in [
            (test(&["All"], "shop.Cart", "adds"), "shop.Cart.adds", None),
            (test(&["All", "Cart"], "", "adds"), "All > Cart.adds", Some("adds")),
            (test(&["shop.Cart-20261126184858"], "", "adds"), "shop.Cart.adds", Some("adds")),
            (test(&["pay/pay_test"], "", "pay/pay_test"), "pay/pay_test", None),
            (test(&[], "", "adds"), "adds", None),
            (
                test(&["Cart"], "shop.Cart", "setUpClass"),
                "shop.Cart.setUpClass",
                Some("setUpClass (shop.Cart)"),
            ),
            (test(&["shop.Cart"], "", ""), "shop.Cart", Some("unnamed")),
        ] {
            assert_eq!(test.identifier(), identifier);
            assert_eq!(test.former_identifier().as_deref(), former, "{identifier}");
        }
        let of_file = Test { file: "cart.t".to_owned(), ..test(&[], "", "adds") };
        assert_eq!(of_file.identifier(), "cart.t.adds");
    }

    #[test]
    fn results_of_the_same_instance_are_attempts_if_its_tool_retries_tests() {
        let result = |name: &str, retry, result| Test {
            retry,
            attempts: vec![Attempt { result, ..Attempt::default() }],
            ..test(&[], "shop", name)
        };
        let mut identities = Identities::default();
        let mut place = |name, retry, outcome| {
            let place = identities.place(&result(name, retry, outcome), name, "");
            (place.instance, place.attempts, place.attempt_of)
        };
        assert_eq!(place("a", Retry::Never, Failed), (1, 0, None));
        assert_eq!(place("b", Retry::AfterFailure, Failed), (1, 0, None));
        assert_eq!(place("a", Retry::Never, Passed), (2, 0, None));
        assert_eq!(place("b", Retry::AfterFailure, Passed), (1, 1, Some(1)));
        assert_eq!(place("b", Retry::AfterFailure, Passed), (2, 0, None));
        assert_eq!(place("b", Retry::Always, Passed), (2, 1, Some(4)));
    }

    #[test]
    fn a_test_of_another_file_is_another_instance() {
        let passed = Test {
            retry: Retry::Always,
            attempts: vec![Attempt { result: Passed, ..Attempt::default() }],
            ..test(&[], "shop", "adds")
        };
        let mut identities = Identities::default();
        let place = |identities: &mut Identities| {
            let place = identities.place(&passed, "shop.adds", "");
            (place.instance, place.attempt_of, place.repeats)
        };
        assert_eq!(place(&mut identities), (1, None, None));
        identities.begin_file();
        assert_eq!(place(&mut identities), (2, None, Some(0)));
        assert_eq!(place(&mut identities), (2, Some(1), None));
    }
}
