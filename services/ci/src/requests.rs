//! The requests that reports are sent in.

use std::collections::{BTreeMap, HashMap};

use crate::{
    contents::Outcome,
    reports::{MAX_FILES, MAX_REQUEST, Part, Report},
};

/// The files of one request.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) parts: Vec<Part>,
    /// Number of its instances of a test, from 1. Further results of a reporter are attempts, which would hide a
    /// failure of another configuration. So a request with tests of an earlier one has another number.
    pub(crate) nr: usize,
}

/// Divides reports among requests. A report that is too large for any request is alone in one, which
/// Assay refuses with a reason.
pub(crate) fn requests(reports: Vec<Report>) -> Vec<Request> {
    let (mut requests, mut sent) = (Vec::<Request>::new(), Sent::default());
    let (mut size, mut is_open) = (0_u64, false);
    for report in reports {
        let fits = |last: &Request| {
            is_open
                && !report.is_folder
                && size + report.size() <= MAX_REQUEST
                && last.parts.len() + report.parts.len() <= MAX_FILES
                && last.nr == sent.nr_of(&report.tests)
        };
        if !requests.last().is_some_and(fits) {
            sent.end_request(requests.last().map_or(1, |last| last.nr));
            (size, is_open) = (0, !report.is_folder);
            requests.push(Request { parts: Vec::new(), nr: sent.nr_of(&report.tests) });
        }
        size += report.size();
        sent.open.extend(report.tests);
        if let Some(last) = requests.last_mut() {
            last.parts.extend(report.parts);
        }
    }
    requests
}

/// Tests of the requests so far.
#[derive(Default)]
struct Sent {
    /// The last results in requests that are complete, with the numbers of these.
    before: HashMap<String, (Outcome, usize)>,
    /// The results in the last request.
    open: Vec<(String, Outcome)>,
}

impl Sent {
    fn end_request(&mut self, nr: usize) {
        for (test, outcome) in self.open.drain(..) {
            self.before.insert(test, (outcome, nr));
        }
    }

    /// Returns the number of a request with these tests. If all of them failed in earlier requests, and ran
    /// after them, they are further attempts.
    fn nr_of(&self, tests: &BTreeMap<String, Outcome>) -> usize {
        let (mut last, mut is_rerun) = (0_usize, true);
        for (test, outcome) in tests {
            let Some((before, nr)) = self.before.get(test) else {
                is_rerun = false;
                continue;
            };
            let times = before.start.zip(outcome.start);
            is_rerun &= before.has_failed && times.is_some_and(|(before, after)| before < after);
            last = last.max(*nr);
        }
        if is_rerun { last.max(1) } else { last + 1 }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::PathBuf};

    use super::*;
    use crate::{files::File, reports::reports};

    #[test]
    fn a_request_has_as_many_reports_as_fit() {
        let reports: Vec<_> =
            [10 << 20, 20 << 20, 2 << 20, 40 << 20, 1].map(|size| report(size, &[])).into();
        let sizes: Vec<Vec<u64>> = requests(reports)
            .iter()
            .map(|request| request.parts.iter().map(|part| part.file.size).collect())
            .collect();
        assert_eq!(sizes, [vec![10 << 20, 20 << 20], vec![2 << 20], vec![40 << 20], vec![1]]);
    }

    #[test]
    fn a_folder_of_allure_results_is_a_request_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("allure")).unwrap();
        let names = ["allure/1-result.json", "allure/2-attachment.png", "junit.xml", "more.xml"];
        let files = names.map(|name| File { path: folder.path().join(name), size: 1 });
        for file in &files {
            fs::write(&file.path, "1").unwrap();
        }
        let names: Vec<Vec<String>> = requests(reports(files.into(), false).unwrap())
            .into_iter()
            .map(|request| request.parts.into_iter().map(|part| part.name).collect())
            .collect();
        assert_eq!(
            names,
            [vec!["junit.xml", "more.xml"], vec!["1-result.json", "2-attachment.png"]]
        );
    }

    #[test]
    fn requests_with_the_same_tests_have_other_numbers_unless_one_is_a_rerun() {
        let (failed, passed) = ((true, "10:00"), (false, "11:00"));
        let numbers = |reports: Vec<Report>| -> Vec<usize> {
            requests(reports).iter().map(|request| request.nr).collect()
        };
        let all = 30 << 20;
        let first = || report(all, &[("pays", failed), ("adds", (false, "10:00"))]);
        // Another configuration, of which one test passed, and other tests.
        let second = report(all, &[("pays", passed), ("adds", passed)]);
        assert_eq!(numbers(vec![first(), second, report(all, &[("ships", passed)])]), [1, 2, 1]);
        let rerun = report(all, &[("pays", passed)]);
        assert_eq!(numbers(vec![first(), rerun]), [1, 1]);
        let at_the_same_time = report(all, &[("pays", (false, "10:00"))]);
        assert_eq!(numbers(vec![first(), at_the_same_time]), [1, 2]);
        let small = report(1 << 20, &[("pays", passed), ("adds", passed)]);
        assert_eq!(numbers(vec![first(), small]), [1], "Assay distinguishes them in one request");
    }

    #[test]
    fn reports_state_the_tests_that_they_have() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("junit.xml");
        fs::write(&path, "<testsuite><testcase classname='shop' name='pays'/></testsuite>")
            .unwrap();
        let reports = reports(vec![File { path, size: 1 }], false).unwrap();
        assert!(reports[0].tests.contains_key("shop.pays "), "{reports:?}");
    }

    /// Returns a report of this size with tests, whether they failed, and when.
    fn report(size: u64, tests: &[(&str, (bool, &str))]) -> Report {
        let file = File { path: PathBuf::from("junit.xml"), size };
        let outcome = |has_failed, time: &str| {
            let start = format!("\"2026-11-28T{time}:00Z\"");
            Outcome { has_failed, start: Some(serde_json::from_str(&start).unwrap()) }
        };
        let tests = tests
            .iter()
            .map(|(test, (has_failed, time))| ((*test).to_owned(), outcome(*has_failed, time)));
        let parts = vec![Part { field: "file", name: "junit.xml".to_owned(), file }];
        Report { parts, is_folder: false, tests: tests.collect() }
    }
}
