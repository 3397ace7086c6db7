//! Test cases in PostgreSQL.

use assay_proto::{
    CustomerId, Fault, PlanStatus, ProjectId, Rendered, TestCaseId,
    catalog::{RecordKind, TestCase, TestCaseEntry},
    name_of,
};
use sqlx::PgTransaction;

use super::classification::Classified;
use crate::records::{Columns, ProjectRecord};

/// The plans of a test case, as a column.
const PLANS: &str = "(
        select coalesce(jsonb_agg(jsonb_build_object(
            'Id', id, 'Description', description, 'Revision', revision, 'TestType', test_type,
            'MinimumDurationInMin', minimum_duration_in_min,
            'MonitoringMessage', monitoring_message, 'Instances', instances
        ) order by revision desc), '[]')
        from test_plan
        where customer_id = test_case.customer_id and test_case_id = test_case.id
          and deleted_at is null
    ) as test_plan_list";

impl ProjectRecord for TestCase {
    type Id = TestCaseId;
    type Entry = Rendered<TestCaseEntry>;

    const KIND: RecordKind = RecordKind::TestCase;
    const TABLE: &'static str = "test_case";
    const NOUN: &'static str = "test case";
    const SEARCH: &'static str = "name ilike $4 or identifier ilike $4";
    const COLUMNS_OF_RECORD: Columns = &[Self::COLUMNS, PLANS];
    const COLUMNS_TO_CHANGE: Columns = &[Self::COLUMNS];
    const COLUMNS_OF_ENTRY: Columns = &[TestCaseEntry::COLUMNS];
}

/// A test case among many that are added at once.
pub(crate) struct NewTestCase<'a> {
    pub(crate) id: TestCaseId,
    pub(crate) identifier: &'a str,
    pub(crate) name: &'a str,
    pub(crate) description: &'a str,
    pub(crate) classified: Option<Classified<'a>>,
}

/// Adds test cases, except those whose identifier an active test case has. Returns the ids of the
/// added ones. `plan_status` is the status of the plans that they get.
pub(crate) async fn insert_all(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    plan_status: Option<PlanStatus>,
    cases: &[NewTestCase<'_>],
) -> Result<Vec<TestCaseId>, Fault> {
    let inserted = sqlx::query_scalar(
        "insert into test_case
             (customer_id, project_id, last_plan_status, id, identifier, name, description,
              suites, labels, links, classification_digest)
         select $1, $2, $3, id, identifier, name, description,
             string_to_array(suites, e'\\n'), labels, links, digest
         from unnest($4::uuid[], $5::text[], $6::text[], $7::text[], $8::text[], $9::jsonb[],
                 $10::jsonb[], $11::bigint[])
             as new (id, identifier, name, description, suites, labels, links, digest)
         on conflict (customer_id, project_id, identifier) where live do nothing
         returning id",
    );
    let inserted = inserted
        .bind(customer)
        .bind(project)
        .bind(plan_status.map(name_of))
        .bind(cases.iter().map(|case| case.id).collect::<Vec<_>>())
        .bind(cases.iter().map(|case| case.identifier).collect::<Vec<_>>())
        .bind(cases.iter().map(|case| case.name).collect::<Vec<_>>())
        .bind(cases.iter().map(|case| case.description).collect::<Vec<_>>())
        .bind(classified(cases, |one| Some(one.suites())))
        .bind(classified(cases, Classified::labels))
        .bind(classified(cases, Classified::links))
        .bind(classified(cases, |one| Some(one.digest)));
    Ok(inserted.fetch_all(&mut **tx).await?)
}

/// Returns a column of the classifications of new test cases.
fn classified<'a, T>(
    cases: &[NewTestCase<'a>],
    value: impl Fn(&Classified<'a>) -> Option<T>,
) -> Vec<Option<T>> {
    cases.iter().map(|case| case.classified.as_ref().and_then(&value)).collect()
}
