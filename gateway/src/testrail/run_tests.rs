//! Tests: the test cases of a run.

use std::collections::HashMap;

use assay_proto::{
    TestResult,
    execution::{
        ListTestReportsRequest, NumberedKind, NumberedRecord, TestReportBatch, TestReportEntry,
    },
};
use futures::{StreamExt, TryStreamExt};
use serde_json::{Value, json};
use tonic::{Response, Streaming};

use super::{
    Session,
    call::Call,
    number::{self, details, record},
    page::{self, Next, Paging},
};
use crate::{problem::Problem, rendering, services::TestReports};

/// The statuses of TestRail, with their ids and names.
const STATUSES: [(i64, &str); 5] =
    [(1, "passed"), (2, "blocked"), (3, "untested"), (4, "retest"), (5, "failed")];

pub(super) fn statuses() -> Value {
    let status = |(id, name): (i64, &str)| {
        let label = name[..1].to_uppercase() + &name[1..];
        let (is_untested, is_final) = (name == "untested", name != "untested" && name != "retest");
        json!({
            "id": id, "name": name, "label": label, "is_system": true, "is_untested": is_untested,
            "is_final": is_final,
        })
    };
    STATUSES.into_iter().map(status).collect()
}

fn status(result: TestResult) -> i64 {
    match result {
        TestResult::Passed => 1,
        TestResult::Aborted => 2,
        TestResult::NotExecuted | TestResult::Unspecified => 3,
        TestResult::Canceled => 4,
        TestResult::Failed | TestResult::Error => 5,
    }
}

impl Session {
    /// Returns the test cases that a run was limited to, or else those with results.
    pub(super) async fn tests(&self, call: &Call, run: i64) -> Result<Value, Problem> {
        let (record, paging) = (self.find(NumberedKind::Run, run).await?, Paging::of(call)?);
        let request = ListTestReportsRequest {
            execution_id: record.scope_id.clone(),
            page: Some(paging.rest()),
            ..Default::default()
        };
        let mut reports: TestReports = self.client();
        let list = reports.list_test_reports(self.caller.call(request)).await?;
        let (tests, next) = if let Some(cases) = selection(&record) {
            self.selected(&record, run, &cases, &paging, list).await?
        } else {
            let (found, next) = paging.read(list).await?;
            let id = &record.key;
            let records =
                found.iter().map(|one| self::record(id, &one.test_case_identifier, &Value::Null));
            let numbered = self.assign(Some(id), NumberedKind::TestCase, records.collect()).await?;
            let tests = numbered.iter().zip(&found);
            let tests = tests.map(|(case, report)| of_report(run, case.number, report));
            (tests.collect(), next.map(|cursor| Next(Some(cursor))))
        };
        Ok(page::of(call, "tests", &tests, next))
    }

    /// Returns a page of the test cases that a run was limited to. Of its reports, only those of the
    /// page are kept.
    async fn selected(
        &self,
        run: &NumberedRecord,
        run_number: i64,
        cases: &[i64],
        paging: &Paging,
        list: Response<Streaming<TestReportBatch>>,
    ) -> Result<(Vec<Value>, Option<Next>), Problem> {
        let (offset, limit) = (usize::try_from(paging.offset), usize::try_from(paging.limit));
        let (offset, limit) = (offset.unwrap_or(usize::MAX), limit.unwrap_or(usize::MAX));
        let chosen: Vec<i64> = cases.iter().skip(offset).take(limit).copied().collect();
        let found = self.find_all(NumberedKind::TestCase, chosen.clone()).await?;
        let found = found.into_iter().filter(|case| case.scope_id == run.key);
        let numbers: HashMap<String, i64> = found.map(|case| (case.key, case.number)).collect();
        let number_of = |identifier: &str| {
            let stated = || identifier.strip_prefix('C')?.parse().ok();
            let number = numbers.get(identifier).copied().or_else(stated)?;
            chosen.contains(&number).then_some(number)
        };
        let (mut reports, mut batches) = (HashMap::new(), rendering::messages(list).boxed());
        while let Some((batch, _share)) = batches.try_next().await? {
            let batch = assay_proto::Batch::parse(&batch)?;
            reports.extend(batch.into_iter().filter_map(|report: TestReportEntry| {
                Some((number_of(&report.test_case_identifier)?, report))
            }));
        }
        let test = |case: &i64| match reports.get(case) {
            Some(report) => of_report(run_number, *case, report),
            None => of_test(run_number, *case, &format!("C{case}"), TestResult::NotExecuted),
        };
        let next = (cases.len() > offset.saturating_add(limit)).then_some(Next(None));
        Ok((chosen.iter().map(test).collect(), next))
    }
}

/// Returns the test cases that a run was limited to.
fn selection(run: &NumberedRecord) -> Option<Vec<i64>> {
    let mut details = details(run);
    let is_limited = details.get("include_all") == Some(&Value::Bool(false));
    let cases = details.remove("case_ids").filter(|_| is_limited)?;
    Some(cases.as_array()?.iter().filter_map(Value::as_i64).collect())
}

fn of_report(run: i64, case: i64, report: &TestReportEntry) -> Value {
    of_test(run, case, &report.test_case_name, report.result())
}

fn of_test(run: i64, case: i64, title: &str, result: TestResult) -> Value {
    json!({
        "id": number::test(run, case), "case_id": case, "run_id": run, "title": title,
        "status_id": status(result),
    })
}
