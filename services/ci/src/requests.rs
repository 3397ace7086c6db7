//! The requests that reports are sent in.

use std::collections::{BTreeMap, HashMap};

use assay_proto::Timestamp;

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
        sent.add(report.tests);
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
    before: HashMap<String, (Earlier, usize)>,
    /// The results in the last request.
    open: Vec<(String, Earlier)>,
}

/// The last result of a test in a request.
struct Earlier {
    has_failed: bool,
    /// The time at which all tests of its report had ended. `None` if the end of the test itself is unknown.
    end: Option<Timestamp>,
}

impl Sent {
    /// Adds the tests of a report to the last request.
    fn add(&mut self, tests: BTreeMap<String, Outcome>) {
        let last = tests.values().filter_map(|outcome| outcome.end).max();
        let earlier = |Outcome { has_failed, end, .. }| Earlier { has_failed, end: end.and(last) };
        self.open.extend(tests.into_iter().map(|(test, outcome)| (test, earlier(outcome))));
    }

    fn end_request(&mut self, nr: usize) {
        for (test, earlier) in self.open.drain(..) {
            self.before.insert(test, (earlier, nr));
        }
    }

    /// Returns the number of a request with these tests. If all of them failed in earlier requests, and began after
    /// the reports with them had ended, they are further attempts. Reports of jobs beside each other are not, although
    /// one begins later: its results would hide failures. Assay has the same rule for the files of a request.
    fn nr_of(&self, tests: &BTreeMap<String, Outcome>) -> usize {
        let (mut last, mut is_rerun) = (0_usize, true);
        let begin = tests.values().filter_map(|outcome| outcome.start).min();
        for (test, outcome) in tests {
            let Some((before, nr)) = self.before.get(test) else {
                is_rerun = false;
                continue;
            };
            let is_after = before.end.zip(begin).is_some_and(|(end, begin)| end <= begin);
            is_rerun &= before.has_failed && outcome.start.is_some() && is_after;
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
        let (failed, passed) = ((true, "10:00", "10:01"), (false, "11:00", "11:01"));
        let numbers = |reports: Vec<Report>| -> Vec<usize> {
            requests(reports).iter().map(|request| request.nr).collect()
        };
        let all = 30 << 20;
        let first = || report(all, &[("pays", failed), ("adds", (false, "10:00", "10:05"))]);
        // Another configuration, of which one test passed, and other tests.
        let second = report(all, &[("pays", passed), ("adds", passed)]);
        assert_eq!(numbers(vec![first(), second, report(all, &[("ships", passed)])]), [1, 2, 1]);
        let rerun = report(all, &[("pays", passed)]);
        assert_eq!(numbers(vec![first(), rerun]), [1, 1]);
        let at_the_same_time = report(all, &[("pays", (false, "10:00", "10:01"))]);
        assert_eq!(numbers(vec![first(), at_the_same_time]), [1, 2]);
        let small = report(1 << 20, &[("pays", passed), ("adds", passed)]);
        assert_eq!(numbers(vec![first(), small]), [1], "Assay distinguishes them in one request");
    }

    #[test]
    fn a_rerun_begins_after_all_tests_of_the_earlier_report_have_ended() {
        let all = 30 << 20;
        let first = || {
            report(all, &[("pays", (true, "10:00", "10:02")), ("adds", (false, "10:02", "10:05"))])
        };
        for (begin, expected) in
            [("10:01", [1, 2]), ("10:03", [1, 2]), ("10:05", [1, 1]), ("10:06", [1, 1])]
        {
            let second = report(all, &[("pays", (false, begin, "10:30"))]);
            let numbers: Vec<_> =
                requests(vec![first(), second]).iter().map(|request| request.nr).collect();
            assert_eq!(numbers, expected, "{begin}");
        }
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

    /// Returns a report of this size with tests, whether they failed, and when they began and ended.
    fn report(size: u64, tests: &[(&str, (bool, &str, &str))]) -> Report {
        let file = File { path: PathBuf::from("junit.xml"), size };
        let time = |time: &str| {
            serde_json::from_str(&format!("\"2026-11-28T{time}:00Z\"")).map(Some).unwrap()
        };
        let tests = tests.iter().map(|(test, (has_failed, start, end))| {
            let (start, end) = (time(start), time(end));
            ((*test).to_owned(), Outcome { has_failed: *has_failed, start, end })
        });
        let parts = vec![Part { field: "file", name: "junit.xml".to_owned(), file }];
        Report { parts, is_folder: false, tests: tests.collect() }
    }
}
