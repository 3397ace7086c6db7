//! The tests of an execution, those that fail first.

use std::pin::pin;

use assay_auth::Caller;
use assay_console::taken;
use assay_document::{Allowance, Cause, Listed, Test};
use assay_proto::{
    Batch, Page, ResultChange, TestResult,
    execution::{
        ExecutionSummary, Failure, ListFailuresRequest, ListTestReportsRequest, TestReportEntry,
    },
};
use futures::TryStreamExt;
use tonic::{Response, Streaming};

use super::{
    Documents,
    facts::{outcome, shown},
};
use crate::{list, problem::Problem};

/// Maximum numbers of causes and tests in a document, and of the bytes of their texts.
const CAUSES: usize = 50;
const TESTS: usize = 2000;
const TEXTS: usize = 1 << 20;

/// Maximum length of a name and of a message, in bytes.
const NAME: usize = 200;
const MESSAGE: usize = 500;

/// Results that are listed first, in this order.
const FIRST: [TestResult; 3] = [TestResult::Failed, TestResult::Error, TestResult::Aborted];

/// A test that fails, whose steps are read later.
pub(super) struct Entry {
    pub(super) test: Test,
    pub(super) id: String,
    pub(super) test_case_id: String,
    pub(super) test_plan_id: String,
    pub(super) ticket: String,
    pub(super) comment: String,
    /// Place among the failures: new ones first, known ones last.
    rank: u8,
}

impl Documents {
    /// Returns the causes of the failures.
    pub(super) async fn causes(
        &mut self,
        caller: &Caller,
        summary: &ExecutionSummary,
    ) -> Result<Listed<Cause>, Problem> {
        let request = ListFailuresRequest {
            project_id: Some(summary.project_id.clone()),
            execution_id: id(summary),
            page: Some(Page::default()),
            ..Default::default()
        };
        let batches = self.failures.list_failures(caller.call(request)).await?;
        let mut rest = Allowance::new(TEXTS);
        let (mut items, mut count) = (Vec::new(), 0);
        read(batches, |failure: Failure| {
            count += 1;
            if items.len() < CAUSES {
                items.push(cause(&failure, &mut rest));
            }
            // Further ones are counted only.
            count < 20 * CAUSES
        })
        .await?;
        Ok(Listed { left_out: count - items.len(), items })
    }

    /// Returns the tests for the table, and those that fail.
    pub(super) async fn tests(
        &mut self,
        caller: &Caller,
        summary: &ExecutionSummary,
    ) -> Result<(Listed<Test>, Vec<Entry>), Problem> {
        let mut rest = Allowance::new(TEXTS);
        let mut entries = Vec::new();
        for result in FIRST {
            let request = ListTestReportsRequest { result: result.into(), ..request(summary) };
            let batches = self.reports.list_test_reports(caller.call(request)).await?;
            read(batches, |entry| {
                let has_room = entries.len() < TESTS && !rest.is_spent();
                has_room.then(|| entries.push(of_entry(entry, &mut rest)));
                has_room
            })
            .await?;
        }
        entries.sort_by_key(|entry: &Entry| entry.rank);
        let mut items: Vec<Test> = entries.iter().map(|entry| entry.test.clone()).collect();

        let batches = self.reports.list_test_reports(caller.call(request(summary))).await?;
        read(batches, |entry: TestReportEntry| {
            let has_room = items.len() < TESTS && !rest.is_spent();
            if has_room && !FIRST.contains(&entry.result()) {
                items.push(test(&entry, &mut rest));
            }
            has_room
        })
        .await?;
        let execution = summary.execution.as_ref();
        let statistic = execution.and_then(|execution| execution.statistic.as_ref());
        let total = statistic.map_or(0, |statistic| statistic.test_cases_total);
        let total = usize::try_from(total).unwrap_or_default();
        Ok((Listed { left_out: total.saturating_sub(items.len()), items }, entries))
    }
}

fn id(summary: &ExecutionSummary) -> String {
    summary.execution.as_ref().map(|execution| execution.id.clone()).unwrap_or_default()
}

fn request(summary: &ExecutionSummary) -> ListTestReportsRequest {
    ListTestReportsRequest {
        project_id: Some(summary.project_id.clone()),
        execution_id: id(summary),
        page: Some(Page::default()),
        ..Default::default()
    }
}

/// Reads the records of a list for as long as `take` returns that it has room for more.
async fn read<B: Batch + 'static>(
    batches: Response<Streaming<B>>,
    mut take: impl FnMut(B::Item) -> bool,
) -> Result<(), Problem> {
    let mut batches = pin!(list::parsed(batches).await?);
    while let Some((records, _share)) = batches.try_next().await? {
        for record in records {
            if !take(record) {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn cause(failure: &Failure, rest: &mut Allowance) -> Cause {
    Cause {
        headline: rest.text(&failure.headline, MESSAGE),
        count: failure.count,
        tests: failure.reports.iter().map(|entry| rest.line(&entry.test_case_name, NAME)).collect(),
    }
}

fn of_entry(entry: TestReportEntry, rest: &mut Allowance) -> Entry {
    let rank = match entry.change() {
        _ if entry.is_muted => 4,
        ResultChange::New => 0,
        ResultChange::CauseChanged => 1,
        ResultChange::Still => 2,
        _ => 3,
    };
    Entry {
        test: test(&entry, rest),
        ticket: rest.line(&entry.ticket, NAME),
        comment: rest.line(entry.comment.as_deref().unwrap_or_default(), MESSAGE),
        id: entry.id,
        test_case_id: entry.test_case_id,
        test_plan_id: entry.test_plan_id,
        rank,
    }
}

fn test(entry: &TestReportEntry, rest: &mut Allowance) -> Test {
    let name = if entry.test_case_name.trim().is_empty() {
        &entry.test_case_identifier
    } else {
        &entry.test_case_name
    };
    Test {
        name: rest.line(name, NAME),
        identifier: rest.line(&entry.test_case_identifier, NAME),
        result: outcome(entry.result()),
        change: change(entry),
        duration: taken(shown(entry.result()), entry.duration_in_sec),
        headline: rest.text(&entry.headline, MESSAGE),
    }
}

/// Returns how a result differs from earlier ones, in the words of readers.
fn change(entry: &TestReportEntry) -> String {
    let change = match entry.change() {
        ResultChange::Unspecified | ResultChange::None => "",
        ResultChange::New => "new",
        ResultChange::Still => "still failing",
        ResultChange::Fixed => "fixed",
        ResultChange::Flaky => "flaky",
        ResultChange::CauseChanged => "other cause",
    };
    let known = if entry.is_muted { "known" } else { "" };
    let parts: Vec<_> = [change, known].into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(change: ResultChange, is_muted: bool) -> TestReportEntry {
        let result = TestResult::Failed.into();
        TestReportEntry { change: change.into(), is_muted, result, ..Default::default() }
    }

    #[test]
    fn new_failures_are_first_and_known_ones_last() {
        let mut rest = Allowance::new(1000);
        let mut rank = |change, is_muted| of_entry(entry(change, is_muted), &mut rest).rank;
        let ranks = [
            rank(ResultChange::New, false),
            rank(ResultChange::CauseChanged, false),
            rank(ResultChange::Still, false),
            rank(ResultChange::Flaky, false),
            rank(ResultChange::New, true),
        ];
        assert!(ranks.is_sorted());
    }

    #[test]
    fn a_test_that_did_not_run_has_taken_no_time() {
        let duration = |result: TestResult| {
            let entry = TestReportEntry { result: result.into(), ..Default::default() };
            test(&entry, &mut Allowance::new(1000)).duration
        };
        assert_eq!(
            (duration(TestResult::Canceled), duration(TestResult::Failed)),
            ("–".into(), "0 ms".into())
        );
    }

    #[test]
    fn changes_are_named() {
        assert_eq!(change(&entry(ResultChange::New, false)), "new");
        assert_eq!(change(&entry(ResultChange::Flaky, true)), "flaky, known");
        assert_eq!(change(&entry(ResultChange::None, false)), "");
    }
}
