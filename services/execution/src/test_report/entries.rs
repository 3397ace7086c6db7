//! The test reports of an execution as entries of a list, each with its last results.

use assay_fingerprint::Fingerprint;
use assay_ledger::{
    change, failure::retried, progress::execution::ExecutionState, verdict::store::UNREVIEWED,
};
use assay_proto::{
    CustomerId, ExecutionId, Fault, ReportStatus, ResultChange, TestReportId, TestResult,
    Timestamp,
    execution::{ListTestReportsRequest, TestReportEntry},
    name_of,
};
use assay_records::{Check, Criterion, criteria};
use assay_rpc::list::{Rows, Slice};
use sqlx::{PgPool, QueryBuilder};
use uuid::Uuid;

/// The condition, before its pattern, that a report has a text in its name or identifier.
pub(super) const NAMED: &str =
    " and concat_ws(E'\\n', r.test_case_identifier, r.test_case_name) ilike ";

/// Selects reports of an execution.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    result: Option<String>,
    status: Option<String>,
    change: Option<String>,
    fingerprint: Option<Fingerprint>,
    muted: Option<bool>,
    unreviewed: bool,
    criteria: Vec<Criterion>,
}

impl Filter {
    pub(crate) fn of(request: &ListTestReportsRequest) -> Result<Self, Fault> {
        let mut check = Check::default();
        let fingerprint = request.fingerprint.as_deref().filter(|text| !text.is_empty());
        let fingerprint = fingerprint.map(str::parse::<Fingerprint>).transpose();
        if fingerprint.is_err() {
            check.refuse("fingerprint", "must be the fingerprint of a failure");
        }
        check.done()?;
        let result = Some(request.result()).filter(|result| *result != TestResult::Unspecified);
        let status = Some(request.status()).filter(|status| *status != ReportStatus::Unspecified);
        let change = Some(request.change()).filter(|change| *change != ResultChange::Unspecified);
        Ok(Self {
            result: result.map(name_of),
            status: status.map(name_of),
            change: change.map(name_of),
            fingerprint: fingerprint.ok().flatten(),
            muted: request.muted,
            unreviewed: request.unreviewed,
            criteria: criteria(request.classification.clone())?,
        })
    }

    /// Adds the conditions to a statement that selects reports `r`.
    pub(super) fn push_to(
        &self,
        sql: &mut QueryBuilder<sqlx::Postgres>,
        customer: CustomerId,
        execution: ExecutionId,
    ) {
        for (column, value) in
            [("result", &self.result), ("status", &self.status), ("change", &self.change)]
        {
            if let Some(value) = value {
                sql.push(format!(" and r.{column} = ")).push_bind(value.clone());
            }
        }
        if let Some(muted) = self.muted {
            sql.push(" and r.is_muted = ").push_bind(muted);
        }
        if self.unreviewed {
            sql.push(" and ").push(UNREVIEWED);
        }
        for Criterion { before, value, after } in &self.criteria {
            sql.push(" and ").push(before).push_bind(value.clone()).push(after);
        }
        if let Some(fingerprint) = &self.fingerprint {
            // An array, so that every plan reads the index of causes once, however many reports it
            // expects in an execution that PostgreSQL has not analyzed yet.
            sql.push(" and r.id = any(array(select test_report_id from kept_failure where customer_id = ");
            sql.push_bind(customer).push(" and execution_id = ").push_bind(execution);
            sql.push(" and fingerprint = ").push_bind(fingerprint.as_bytes().to_vec()).push("))");
        }
    }
}

/// Lists reports of an execution, in the order of its test set.
pub(crate) async fn list(
    db: &PgPool,
    customer: CustomerId,
    state: &ExecutionState,
    filter: &Filter,
    slice: &Slice,
) -> Result<Rows<TestReportEntry>, Fault> {
    let id = ExecutionId::from_record(&state.execution.id)?;
    let after = TestReportId::from_field_if_any("cursor", slice.after.as_deref())?;
    let shown = change::shown(db, customer, state).await?;
    let mut sql = select(customer, id, &shown);
    filter.push_to(&mut sql, customer, id);
    if let Some(pattern) = &slice.pattern {
        sql.push(NAMED).push_bind(pattern.clone());
    }
    if let Some(after) = after {
        sql.push(" and r.id > ").push_bind(after);
    }
    sql.push(" order by r.id limit ").push_bind(slice.limit);
    Ok(read(db, customer, id, &shown, sql).await?.into())
}

/// Reads these reports of an execution.
pub(crate) async fn of_ids(
    db: &PgPool,
    customer: CustomerId,
    state: &ExecutionState,
    reports: &[Uuid],
) -> Result<Vec<TestReportEntry>, Fault> {
    let id = ExecutionId::from_record(&state.execution.id)?;
    let shown = change::shown(db, customer, state).await?;
    let mut sql = select(customer, id, &shown);
    sql.push(" and r.id = any(").push_bind(reports).push(")");
    read(db, customer, id, &shown, sql).await
}

/// Selects the reports `r` of an execution, with their results in the executions that are shown before it.
fn select(customer: CustomerId, id: ExecutionId, shown: &[Uuid]) -> QueryBuilder<sqlx::Postgres> {
    let columns = TestReportEntry::COLUMNS;
    let mut sql = QueryBuilder::new(format!("select {columns} from test_report r"));
    sql.push(
        " left join lateral (
            select max(attempt) as attempts from instance
            where customer_id = r.customer_id and test_report_id = r.id
              and result <> 'NotExecuted'
        ) as i on true
        left join lateral (
            select fingerprint, headline from kept_failure
            where customer_id = r.customer_id and test_report_id = r.id
            order by instance_nr
            limit 1
        ) as f on true
        cross join lateral (
            select coalesce(string_agg(coalesce(left(p.result, 1), '-'), '' order by nr desc), '')
                as history
            from unnest(",
    );
    sql.push_bind(shown.to_vec());
    sql.push(
        ") with ordinality as b (id, nr)
            left join test_report p on p.customer_id = r.customer_id and p.execution_id = b.id
                and p.test_case_id = r.test_case_id
        ) as h
        where r.customer_id = ",
    );
    sql.push_bind(customer).push(" and r.execution_id = ").push_bind(id);
    sql
}

async fn read(
    db: &PgPool,
    customer: CustomerId,
    id: ExecutionId,
    shown: &[Uuid],
    mut sql: QueryBuilder<sqlx::Postgres>,
) -> Result<Vec<TestReportEntry>, Fault> {
    let mut entries: Vec<TestReportEntry> = sql.build_query_as().fetch_all(db).await?;
    let retried = entries.iter().filter(|entry| entry.is_flaky && entry.headline.is_empty());
    let retried: Vec<_> = retried.map(|entry| entry.id.as_str()).collect();
    let mut headlines = retried::headlines(db, customer, id, &retried).await?;
    for entry in &mut entries {
        entry.failing_since = failing_since(entry, id, shown);
        if let Some(headline) = headlines.remove(&entry.id) {
            entry.headline = headline;
        }
    }
    Ok(entries)
}

/// Returns the time of the first execution since which the test case has failed without passing, if
/// it fails. `shown` are the executions of its history, the latest first.
fn failing_since(
    entry: &TestReportEntry,
    execution: ExecutionId,
    shown: &[Uuid],
) -> Option<Timestamp> {
    if !entry.result().is_failure() {
        return None;
    }
    let before = entry.history.chars().rev().zip(shown).take_while(|(result, _)| *result != 'P');
    let failed = before.filter(|(result, _)| matches!(result, 'F' | 'E'));
    let first = failed.map(|(_, id)| *id).last().unwrap_or(execution.0);
    let (seconds, nanoseconds) = first.get_timestamp()?.to_unix();
    let time = chrono::DateTime::from_timestamp(i64::try_from(seconds).ok()?, nanoseconds)?;
    Some(Timestamp(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_case_fails_since_the_first_failure_after_it_passed() {
        let at = |second| Uuid::new_v7(uuid::Timestamp::from_unix(uuid::NoContext, second, 0));
        let baseline = [at(4), at(3), at(2), at(1)];
        let since = |history: &str, result| {
            let mut entry = TestReportEntry { history: history.to_owned(), ..Default::default() };
            entry.set_result(result);
            failing_since(&entry, ExecutionId(at(5)), &baseline).map(|time| time.0.timestamp())
        };
        assert_eq!(since("PFFF", TestResult::Failed), Some(2));
        assert_eq!(since("F-EC", TestResult::Error), Some(1));
        assert_eq!(since("FFFP", TestResult::Failed), Some(5));
        assert_eq!(since("----", TestResult::Failed), Some(5));
        assert_eq!(since("", TestResult::Failed), Some(5));
        assert_eq!(since("FFFF", TestResult::Passed), None);
    }
}
