//! The numbers on the pages of a triage, compared with the rows behind their links and with one another.

use std::collections::BTreeSet;

use crate::console::{
    Reader,
    numbers::{between, next_page, numbers},
};

/// A cause in the list of a triage.
struct Listed {
    fingerprint: String,
    /// Numbers of its tests, and of those that are left.
    tests: usize,
    left: usize,
}

/// Returns the first number of a text.
fn number(text: &str) -> Option<usize> {
    text.split(|digit: char| !digit.is_ascii_digit())
        .find(|digits| !digits.is_empty())?
        .parse()
        .ok()
}

/// Reads the causes that a page of the triage lists.
fn listed(page: &str) -> Vec<Listed> {
    let list = between(page, "aria-label=\"All causes\"", "</nav>").unwrap_or_default();
    let entries = list.split("<li").skip(1).map(|entry| {
        let fingerprint = between(entry, "cause=", "\"").unwrap();
        let fingerprint = fingerprint.split('&').next().unwrap().to_owned();
        let tests = number(between(entry, "<b>", "</b>").unwrap()).unwrap();
        let left = match between(entry, "class=\"small\">", "</span>") {
            Some(" judged") => 0,
            Some(left) => number(left).unwrap(),
            None => tests,
        };
        Listed { fingerprint, tests, left }
    });
    entries.collect()
}

impl Reader {
    /// Returns the names of the tests in the rows of a list and of the pages that follow.
    async fn names(&self, path: &str) -> BTreeSet<String> {
        let (mut next, mut names) = (Some(path.to_owned()), BTreeSet::new());
        while let Some(path) = next {
            let page = self.html(&path).await;
            let rows = page.split("<li class=\"row test").skip(1);
            names.extend(rows.map(|row| between(row, "<bdi>", "</bdi>").unwrap().to_owned()));
            next = next_page(&page);
        }
        names
    }

    /// Checks every number on the pages of an execution and of its triage, of whose failures so many are left.
    /// Returns the names of the tests behind the causes.
    pub(super) async fn audit(
        &self,
        execution: &str,
        failures: usize,
        left: usize,
    ) -> BTreeSet<String> {
        let page = format!("/executions/{execution}");
        let html = self.html(&page).await;
        let found = numbers(between(&html, "id=\"summary\"", "</header>").unwrap());
        let to_review = found.iter().find(|(list, _)| list.ends_with("?unreviewed=true"));
        assert_eq!(to_review.map_or(0, |(_, number)| *number), left, "{found:?}");
        let failed = found.iter().find(|(list, _)| list.contains("result=Failed"));
        assert_eq!(failed.map(|(_, number)| *number), Some(failures), "{found:?}");
        for (list, number) in found {
            assert_eq!(self.rows(&list).await, number, "{list}");
        }

        let triage = self.html(&format!("{page}/triage?all=yes")).await;
        let progress = between(&triage, "id=\"left\">", "</span>").unwrap();
        let expected = match left {
            0 => format!("All {failures} failures are judged"),
            left => format!("{left} of {failures} left"),
        };
        assert_eq!(progress, expected);
        let causes = listed(&triage);
        let title = between(&triage, "<h2>", " with one cause</h2>").unwrap();
        assert_eq!(number(title), Some(causes[0].tests));
        let mut names = BTreeSet::new();
        for cause in &causes {
            let list = format!("{page}?fingerprint={}", cause.fingerprint);
            let of_cause = self.names(&list).await;
            assert_eq!(of_cause.len(), cause.tests, "{list}");
            assert_eq!(self.rows(&format!("{list}&unreviewed=true")).await, cause.left, "{list}");
            names.extend(of_cause);
        }
        assert_eq!(causes.iter().map(|cause| cause.tests).sum::<usize>(), failures);
        assert_eq!(causes.iter().map(|cause| cause.left).sum::<usize>(), left);
        let open = listed(&self.html(&format!("{page}/triage")).await);
        assert_eq!(open.len(), causes.iter().filter(|cause| cause.left > 0).count());
        names
    }
}
