//! The summary of the latest runs of a test case: how often it failed on a branch, for which cause, since
//! when, and on which branches the outcome is another one.

use maud::{Markup, html};

use crate::{
    page::part::revision,
    record::TestCaseRun,
    text::{counted, number, plain, short_time},
};

/// Maximum number of other branches that are named.
const BRANCHES: usize = 3;

/// The runs of a branch, those requested last first.
pub(super) struct Digest<'a> {
    /// None if the runs have no branch, or several.
    branch: Option<&'a str>,
    runs: Vec<&'a TestCaseRun>,
    /// Branches whose latest run has another outcome.
    others: Vec<&'a str>,
}

impl<'a> Digest<'a> {
    /// Summarizes the runs of the default branch, or all runs if none is of it.
    pub(super) fn of(runs: &'a [TestCaseRun], default_branch: &'a str) -> Self {
        let judged = || runs.iter().filter(|run| run.result.is_judged());
        let is_of = |branch| move |run: &&TestCaseRun| run.branch.as_deref() == Some(branch);
        let mut branch = judged().any(|run| is_of(default_branch)(&run)).then_some(default_branch);
        let first = judged().find_map(|run| run.branch.as_deref());
        // A filter may have left the runs of one other branch.
        branch = branch.or_else(|| first.filter(|first| judged().all(|run| is_of(first)(&run))));
        let of_branch: Vec<_> = match branch {
            Some(branch) => judged().filter(is_of(branch)).collect(),
            None => judged().collect(),
        };
        let mut others = Vec::new();
        let mut seen = Vec::from_iter(branch);
        for run in judged().filter(|_| branch.is_some()) {
            let Some(other) = run.branch.as_deref().filter(|other| !seen.contains(other)) else {
                continue;
            };
            seen.push(other);
            if of_branch.first().is_some_and(|latest| latest.failed() != run.failed()) {
                others.push(other);
            }
        }
        Self { branch, runs: of_branch, others }
    }

    fn failures(&self) -> impl Iterator<Item = &'a TestCaseRun> {
        self.runs.iter().copied().filter(|run| run.failed())
    }

    /// Returns the first of the failures without a pass after them.
    fn failing_since(&self) -> Option<&'a TestCaseRun> {
        self.runs.iter().copied().take_while(|run| run.failed()).last()
    }

    /// Returns the message of all failures, if they have the same cause.
    fn only_message(&self) -> Option<&'a str> {
        let first = self.failures().next()?;
        let is_same = self.failures().all(|run| run.fingerprint == first.fingerprint);
        first.headline.as_deref().filter(|message| is_same && !message.is_empty())
    }

    pub(super) fn summary(&self) -> Markup {
        let count = self.failures().count();
        let runs = i64::try_from(self.runs.len()).unwrap_or(i64::MAX);
        html! {
            @if runs > 0 {
                p.lead {
                    @if count == 0 { "Passed in each of the last " (counted(runs, "run")) }
                    @else if count == self.runs.len() { "Failed in each of the last " (counted(runs, "run")) }
                    @else { "Failed in " (number(count.try_into().unwrap_or(i64::MAX))) " of the last " (counted(runs, "run")) }
                    @if let Some(branch) = self.branch { " on " bdi { (plain(branch)) } }
                    @if let Some(message) = self.only_message() {
                        @if count > 1 { ", always with " } @else { ", with " }
                        q { bdi { (plain(first_line(message))) } }
                    }
                    @if let Some(since) = self.failing_since() {
                        @if count < self.runs.len() { ", since " (begin(since)) }
                    } @else if let Some(last) = self.failures().next() { ", the last time at " (begin(last)) }
                    @if !self.others.is_empty() {
                        @if self.failing_since().is_some() { "; passes on " } @else { "; fails on " }
                        @for (nr, other) in self.others.iter().take(BRANCHES).enumerate() {
                            @if nr > 0 { ", " }
                            bdi { (plain(other)) }
                        }
                        @if self.others.len() > BRANCHES {
                            " and " (number((self.others.len() - BRANCHES).try_into().unwrap_or(i64::MAX))) " more"
                        }
                    }
                    "."
                }
            }
        }
    }
}

/// A run, by its commit and time, with a link.
fn begin(run: &TestCaseRun) -> Markup {
    html! {
        a href=(format!("/reports/{}", run.id)) {
            @if let Some(commit) = revision(None, run.commit.as_deref()) { (plain(&commit)) " on " }
            (short_time(run.request_time))
        }
    }
}

fn first_line(message: &str) -> &str {
    message.lines().next().unwrap_or_default()
}

/// The causes of the failures among some runs: how often, and when they were first and last.
pub(super) fn causes(runs: &[TestCaseRun], project: &str) -> Markup {
    let mut causes: Vec<(&str, Vec<&TestCaseRun>)> = Vec::new();
    for run in runs.iter().filter(|run| run.failed()) {
        let Some(fingerprint) = run.fingerprint.as_deref() else { continue };
        match causes.iter_mut().find(|(known, _)| *known == fingerprint) {
            Some((_, of)) => of.push(run),
            None => causes.push((fingerprint, vec![run])),
        }
    }
    html! {
        @if !causes.is_empty() {
            h2 { "Causes in these runs" }
            ol.rows { @for (fingerprint, runs) in &causes { (cause_row(fingerprint, runs, project)) } }
        }
    }
}

fn cause_row(fingerprint: &str, runs: &[&TestCaseRun], project: &str) -> Markup {
    let (Some(latest), Some(first)) = (runs.first(), runs.last()) else { return html! {} };
    let message = latest.headline.as_deref().unwrap_or_default();
    html! {
        li.row.past {
            span.mark {}
            span.what {
                a href=(format!("/executions/{}?fingerprint={fingerprint}", latest.execution_id)) {
                    @if message.is_empty() { "No message" } @else { bdi { (plain(first_line(message))) } }
                }
                span.facts {
                    span.fact { (counted(i64::try_from(runs.len()).unwrap_or(i64::MAX), "failure")) }
                    @if runs.len() > 1 { span.fact { "first " (begin(first)) } }
                    span.fact { "last " (begin(latest)) }
                }
            }
            span.marks {}
            span.time { a href=(format!("/projects/{project}/causes")) { "Rules" } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs from texts such as `main F bank`: the branch, the letter of the result and the message.
    fn runs(texts: &[&str]) -> Vec<TestCaseRun> {
        let run = |(nr, text): (usize, &&str)| {
            let mut parts = text.splitn(3, ' ');
            let (branch, letter) = (parts.next(), parts.next().unwrap_or_default());
            let message = parts.next();
            serde_json::from_value(serde_json::json!({
                "Id": nr.to_string(), "ExecutionId": "e", "RequestTime": "2026-03-01T00:00:00Z",
                "Result": if letter == "F" { "Failed" } else { "Passed" }, "Status": "Accepted",
                "TotalDurationInSec": 1, "FlakinessScore": 0, "IsFlaky": false, "TestSetName": "Nightly",
                "Branch": branch, "Commit": format!("c{nr}"), "Fingerprint": message,
                "Headline": message,
            }))
            .unwrap()
        };
        texts.iter().enumerate().map(run).collect()
    }

    fn summary(texts: &[&str]) -> String {
        let html = Digest::of(&runs(texts), "main").summary().into_string();
        let mut text = String::new();
        for part in html.split('<') {
            text.push_str(part.split_once('>').map_or(part, |(_, text)| text));
        }
        text
    }

    #[test]
    fn a_break_has_its_cause_and_its_first_commit() {
        let shown = summary(&["main F no bank", "main F no bank", "work P", "main P", "main P"]);
        let expected = "Failed in 2 of the last 4 runs on main, always with no bank, since c1 on ";
        assert!(shown.starts_with(expected), "{shown}");
        assert!(shown.ends_with("; passes on work."), "{shown}");
    }

    #[test]
    fn several_causes_are_not_shown_as_one() {
        let shown = summary(&["main F no bank", "main P", "main F no printer"]);
        assert!(!shown.contains("no bank") && shown.contains("since c0 on "), "{shown}");
    }

    #[test]
    fn a_test_that_passes_again_has_its_last_failure() {
        let shown = summary(&["main P", "main F no bank", "main P", "work F no bank"]);
        let expected =
            "Failed in 1 of the last 3 runs on main, with no bank, the last time at c1 on ";
        assert!(shown.starts_with(expected), "{shown}");
        assert!(shown.ends_with("; fails on work."), "{shown}");
    }

    #[test]
    fn runs_of_another_branch_or_of_several_are_summarized() {
        assert!(
            summary(&["work P", "work P"])
                .starts_with("Passed in each of the last 2 runs on work.")
        );
        assert!(summary(&["work P", "play P"]).starts_with("Passed in each of the last 2 runs."));
        assert_eq!(summary(&[]), "");
    }
}
