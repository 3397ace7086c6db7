//! A row of the insights.

use maud::{Markup, html};

use super::{FLAKY, Kind, SLOWER};
use crate::{
    api::address,
    chart::{glyph, strip},
    page::{
        part::{OF_TEST, revision},
        row::place,
    },
    record::{Insight, Outcome},
    text::{counted, duration, number, plain, short_time},
};

/// A test case, with a link to its runs on the branch of the view.
pub(super) fn row(insight: &Insight, kind: &Kind, branch: Option<&str>) -> Markup {
    let runs = [("branch", branch)].into_iter().filter_map(|(name, value)| Some((name, value?)));
    let runs = address(&format!("/cases/{}", insight.test_case_id), &runs.collect::<Vec<_>>());
    let outcomes: Vec<_> = insight.outcomes.chars().map(Outcome::of_letter).collect();
    let last = outcomes.last().copied().unwrap_or(Outcome::Absent);
    html! {
        li.row.test {
            span.mark { (glyph(last)) }
            span.what {
                a href=(runs) {
                    bdi { (plain(&insight.test_case_name)) }
                }
                (place(&insight.test_case_identifier, &insight.test_case_name))
                span.facts { (reasons(insight, kind)) }
            }
            span.marks {
                a.small href=(format!("/executions/{}", insight.last_execution_id)) {
                    (short_time(insight.last_run))
                }
            }
            span.history { @if !outcomes.is_empty() { (strip(&outcomes)) } }
            span.time title=(format!("Average of its runs. {OF_TEST}")) {
                (duration(insight.average_duration_in_sec))
            }
        }
    }
}

/// The numbers that put a test case into the ranking.
fn reasons(insight: &Insight, kind: &Kind) -> Markup {
    let of_runs = format!("of {}", counted(insight.runs, "run"));
    html! {
        @if kind.name == FLAKY {
            @if insight.flaky_runs > 0 {
                span.fact { (number(insight.flaky_runs)) " flaky, " (of_runs) }
            }
            @if insight.recoveries > 0 {
                span.fact { "recovered in " (counted(insight.recoveries, "run")) }
            }
        } @else if kind.name == SLOWER {
            (slowdown(insight))
        } @else if insight.failures > 0 {
            span.fact { b.fail { (number(insight.failures)) " failed" } " " (of_runs) }
        } @else {
            span.fact { (counted(insight.runs, "run")) }
        }
        (beginning(insight))
    }
}

/// How much slower a test case has become.
fn slowdown(insight: &Insight) -> Markup {
    let durations = insight.duration_before_in_sec.zip(insight.duration_since_in_sec);
    html! {
        @if let Some((before, since)) = durations {
            span.fact title="Medians of the runs that passed." {
                (duration(before)) " → " b { (duration(since)) }
            }
        }
    }
}

/// The run in which a test case began to fail or to take longer, and the commits since the one before.
fn beginning(insight: &Insight) -> Markup {
    let commit = |commit: &Option<String>| revision(None, commit.as_deref());
    html! {
        @if let Some((execution, time)) = insight.since_execution_id.as_ref().zip(insight.since) {
            span.fact {
                "since " a href=(format!("/executions/{execution}")) { (short_time(time)) }
            }
        }
        @if let Some(since) = commit(&insight.since_commit) {
            span.fact title="The commits in which it began: after the first one, up to the last one." {
                @if let Some(before) = commit(&insight.commit_before) { (plain(&before)) " … " }
                (plain(&since))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{super::KINDS, *};

    /// Returns the row of a test case in a ranking, with these fields beside those that all have.
    fn shown(kind: &str, fields: Value, branch: Option<&str>) -> String {
        let mut insight = json!({
            "TestCaseId": "7", "TestCaseIdentifier": "pays", "TestCaseName": "pays", "Runs": 9,
            "Failures": 3, "FlakyRuns": 0, "Recoveries": 0, "AverageDurationInSec": 1,
            "LastExecutionId": "8", "LastRun": "2026-03-01T00:00:00Z", "Outcomes": "PF",
        });
        let Value::Object(fields) = fields else { panic!("{fields}") };
        insight.as_object_mut().unwrap().extend(fields);
        let insight = serde_json::from_value(insight).unwrap();
        let kind = KINDS.iter().find(|known| known.name == kind).unwrap();
        row(&insight, kind, branch).into_string()
    }

    #[test]
    fn a_test_leads_to_its_runs_on_the_branch_of_the_view() {
        let link = |branch| shown(KINDS[0].name, json!({}), branch);
        assert!(link(Some("work/1")).contains("href=\"/cases/7?branch=work%2F1\""));
        assert!(link(None).contains("href=\"/cases/7\""));
    }

    #[test]
    fn a_slower_test_shows_its_durations_and_the_commits_since_the_one_before() {
        let fields = json!({
            "SinceExecutionId": "6", "Since": "2026-02-27T00:00:00Z", "SinceCommit": "4711abc0815f",
            "CommitBefore": "0123456789ab", "DurationBeforeInSec": 1.2, "DurationSinceInSec": 3.4,
        });
        let html = shown(SLOWER, fields, None);
        let commits = "012345678 … 4711abc08";
        for part in ["1.2 s → <b>3.4 s</b>", "href=\"/executions/6\"", commits] {
            assert!(html.contains(part), "{part} in {html}");
        }
    }
}
