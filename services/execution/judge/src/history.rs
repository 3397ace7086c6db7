//! The history of a test: its last runs, and what they say about it.

use crate::{Outcome, Rule};

/// The executions that a run belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Series {
    /// The same test set, environment and branch as the run that is judged.
    Own,
    /// The same test set and environment, on the default branch.
    DefaultBranch,
}

/// An earlier run of a test.
#[derive(Clone, Copy, Debug)]
pub struct Run<'r> {
    pub series: Series,
    pub outcome: Outcome,
    /// The commit, empty if it is unknown.
    pub commit: &'r str,
}

/// The earlier runs of a test in its series and on the default branch, the latest first. Executions that
/// are evidence about the environment and not about tests are left out.
#[derive(Clone, Copy, Debug, Default)]
pub struct History<'r> {
    pub runs: &'r [Run<'r>],
    /// The last result before this one that it is compared with: that of its series, or of the default
    /// branch if its series has none.
    pub last: Option<Outcome>,
}

/// Number of longest short breaks in a row of failures that flakiness does not explain.
const UNEXPLAINED: usize = 4;

/// Evidence of a history about a test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Evidence {
    /// Number of runs that count, and of failures among them.
    pub(crate) runs: usize,
    pub(crate) failures: usize,
    /// Number of short breaks.
    pub(crate) breaks: usize,
    /// Whether a run passed only after a retry.
    pub(crate) was_retried: bool,
    /// Whether it both passed and failed on one commit.
    pub(crate) differs_on_commit: bool,
    /// Whether the last result was a failure.
    pub(crate) failed_before: bool,
    /// Number of failures in a row in its series, with the one that is judged.
    pub(crate) in_a_row: usize,
}

impl Evidence {
    pub(crate) fn is_flaky(&self, rule: Rule) -> bool {
        self.was_retried || self.differs_on_commit || self.breaks >= rule.breaks
    }

    /// Whether a test has failed in a row for longer than a short break, so that it is broken, flaky or not.
    pub(crate) fn is_broken(&self, rule: Rule) -> bool {
        self.in_a_row > rule.longest_break
    }

    /// Whether a flaky test fails in a row for as long as its flakiness does not explain, for the first time.
    pub(crate) fn is_unexplained(&self, rule: Rule) -> bool {
        self.is_flaky(rule) && self.in_a_row == UNEXPLAINED * rule.longest_break
    }
}

impl History<'_> {
    /// Returns what the last runs say, together with the result that is judged.
    pub(crate) fn evidence(&self, outcome: Outcome, commit: &str, rule: Rule) -> Evidence {
        let runs = &self.runs[..self.runs.len().min(rule.runs)];
        let failed = |run: &&Run<'_>| run.outcome == Outcome::Failed;
        let own = || runs.iter().filter(|run| run.series == Series::Own);
        let default = || runs.iter().filter(|run| run.series == Series::DefaultBranch);
        // A row of failures may be longer than the window in which breaks are counted.
        let all_own = self.runs.iter().filter(|run| run.series == Series::Own);
        let before = all_own.take_while(failed).count();
        Evidence {
            runs: runs.len(),
            failures: runs.iter().filter(failed).count(),
            breaks: breaks(own(), rule) + breaks(default(), rule),
            was_retried: runs.iter().any(|run| run.outcome == Outcome::PassedOnRetry),
            differs_on_commit: differs_on_commit(runs, outcome, commit),
            failed_before: self.last == Some(Outcome::Failed),
            in_a_row: if outcome == Outcome::Failed { before + 1 } else { 0 },
        }
    }
}

/// Counts the short breaks among runs of one series, the latest first. Failures in a row are a break once a
/// pass has followed.
pub(crate) fn breaks<'r>(runs: impl Iterator<Item = &'r Run<'r>>, rule: Rule) -> usize {
    let (mut count, mut length, mut has_recovered) = (0, 0, false);
    for run in runs {
        if run.outcome == Outcome::Failed {
            length += 1;
            continue;
        }
        count += usize::from(has_recovered && (1..=rule.longest_break).contains(&length));
        (length, has_recovered) = (0, true);
    }
    count
}

/// Whether a test has both passed and failed on a commit, counting the result that is judged.
fn differs_on_commit(runs: &[Run<'_>], outcome: Outcome, commit: &str) -> bool {
    let failed = |outcome| outcome == Outcome::Failed;
    let differs = |commit: &str, outcome, others: &[Run<'_>]| {
        let of_commit = |run: &&Run<'_>| run.commit == commit;
        !commit.is_empty()
            && others.iter().filter(of_commit).any(|run| failed(run.outcome) != failed(outcome))
    };
    differs(commit, outcome, runs)
        || runs
            .iter()
            .enumerate()
            .any(|(index, run)| differs(run.commit, run.outcome, &runs[index + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(text: &str) -> Vec<Run<'static>> {
        let run = |char| match char {
            'F' => Run { series: Series::Own, outcome: Outcome::Failed, commit: "" },
            'f' => Run { series: Series::DefaultBranch, outcome: Outcome::Failed, commit: "" },
            'p' => Run { series: Series::DefaultBranch, outcome: Outcome::Passed, commit: "" },
            'R' => Run { series: Series::Own, outcome: Outcome::PassedOnRetry, commit: "" },
            _ => Run { series: Series::Own, outcome: Outcome::Passed, commit: "" },
        };
        text.chars().map(run).collect()
    }

    fn evidence(text: &str, outcome: Outcome) -> Evidence {
        let runs = runs(text);
        let last = runs.first().map(|run| run.outcome);
        History { runs: &runs, last }.evidence(outcome, "", Rule::default())
    }

    #[test]
    fn short_failures_that_a_pass_follows_are_breaks() {
        for (history, breaks) in [
            ("PPP", 0),
            ("PFP", 1),
            ("PFFPFP", 2),
            ("PFFFP", 0),
            // It has not recovered yet.
            ("FPP", 0),
            // Its beginning is not known.
            ("PPF", 0),
        ] {
            assert_eq!(evidence(history, Outcome::Failed).breaks, breaks, "{history}");
        }
    }

    #[test]
    fn a_row_of_failures_is_counted_beyond_the_runs_that_count() {
        let rule = Rule { runs: 5, ..Rule::default() };
        let in_a_row = |text: &str| {
            let runs = runs(text);
            let last = runs.first().map(|run| run.outcome);
            History { runs: &runs, last }.evidence(Outcome::Failed, "", rule).in_a_row
        };
        assert_eq!(in_a_row("FFFFFFFFFP"), 10);
        assert_eq!(in_a_row("pppppFFFP"), 4, "the default branch runs more often");
    }

    #[test]
    fn failures_on_a_branch_are_no_breaks_because_the_default_branch_passes() {
        let broken = evidence("FpFpFpPpP", Outcome::Failed);
        assert_eq!((broken.breaks, broken.in_a_row), (0, 4));
        assert_eq!(evidence("PpfpPpfpP", Outcome::Failed).breaks, 2);
    }

    #[test]
    fn passing_and_failing_on_one_commit_is_flaky() {
        let on = |commit, outcome| Run { series: Series::Own, outcome, commit };
        let runs = [on("b", Outcome::Passed), on("a", Outcome::Passed)];
        assert!(differs_on_commit(&runs, Outcome::Failed, "b"));
        assert!(!differs_on_commit(&runs, Outcome::Failed, "c"));
        assert!(!differs_on_commit(&[on("", Outcome::Passed)], Outcome::Failed, ""));
        let earlier = [on("b", Outcome::Failed), on("b", Outcome::Passed)];
        assert!(differs_on_commit(&earlier, Outcome::Failed, "c"));
    }
}
