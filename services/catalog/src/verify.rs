//! Compares what records show of executions with what the execution service knows, and repairs it.
//!
//! A project is locked while it is compared, so that no event changes its records meanwhile. The right
//! contents of its records result from applying the latest states to records that show nothing, with the
//! functions that apply events. Events that arrive later are of the same or of a later revision.

mod customers;
mod projects;
mod store;

use std::{collections::BTreeMap, fmt::Display};

use assay_database::begin;
use assay_events::{KnownExecutions, KnownReports, KnownRetention};
use assay_proto::{CustomerId, Fault, ProjectId, TestCaseId};
use serde_json::Value;
use sqlx::{PgPool, PgTransaction};
use uuid::Uuid;

pub use self::{
    customers::{compare_appliances, lock_appliances},
    projects::{deletions, find_projects, find_restored},
};
use crate::{
    project::store::lock_exclusive,
    reactions::{execution_changed, replace, show_status},
};

/// A test case that has results, with the project of the latest ones. None if it was deleted.
pub type Executed = (CustomerId, TestCaseId, Option<ProjectId>);

/// The execution service, with what it knows.
pub trait Source: Sync {
    /// Lists the next test cases that have results, of all customers. None are left if it is empty.
    fn executed(
        &self,
        after: Option<(CustomerId, TestCaseId)>,
    ) -> impl Future<Output = Result<Vec<Executed>, Fault>> + Send;

    fn reports(
        &self,
        customer: CustomerId,
        cases: &[TestCaseId],
    ) -> impl Future<Output = Result<KnownReports, Fault>> + Send;

    fn executions(
        &self,
        customer: CustomerId,
        project: ProjectId,
    ) -> impl Future<Output = Result<KnownExecutions, Fault>> + Send;
}

/// The fate of wrong records.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Wrong {
    Kept,
    Repaired,
}

/// The remedy for a record that the catalog lacks, as after the restore of an older backup than that of the
/// execution service.
const RESTORE: &str = "restore a later backup of the catalog; `rebuild` does not create it";

/// The contents of records that executions determine, by table and id.
type Shown = BTreeMap<(String, Uuid), Value>;

/// Reports each record that shows something wrong, and repairs it if asked for. Returns the number of projects
/// that were compared, and that of wrong records.
pub async fn verify(
    db: &PgPool,
    source: &impl Source,
    wrong: Wrong,
    mut report: impl FnMut(&dyn Display),
) -> Result<(u64, u64), Fault> {
    let (mut compared, mut differences, mut after) = (0, 0, None);
    loop {
        let projects = store::projects(db, after).await?;
        for (customer, project) in &projects {
            let (customer, project) = (*customer, *project);
            let mut cases = store::cases(db, customer, project, None).await?;
            while let Some(last) = cases.last().copied() {
                differences +=
                    verify_cases(db, source, wrong, (customer, project), &cases, &mut report)
                        .await?;
                cases = store::cases(db, customer, project, Some(last)).await?;
            }
            differences +=
                verify_project(db, source, wrong, (customer, project), &mut report).await?;
            compared += 1;
        }
        after = projects.last().copied();
        if after.is_none() {
            if wrong == Wrong::Kept {
                differences += find_lacking(db, source, &mut report).await?;
            }
            return Ok((compared, differences));
        }
    }
}

/// Lists how long the results of up to 100 projects are kept, after another project.
pub async fn retentions(
    db: &PgPool,
    after: Option<(CustomerId, ProjectId)>,
) -> Result<Vec<KnownRetention>, Fault> {
    store::retentions(db, after).await
}

/// Verifies the reports of test cases, and what these show.
async fn verify_cases(
    db: &PgPool,
    source: &impl Source,
    wrong: Wrong,
    (customer, project): (CustomerId, ProjectId),
    cases: &[TestCaseId],
    report: &mut impl FnMut(&dyn Display),
) -> Result<u64, Fault> {
    let Some(mut tx) = lock(db, customer, project).await? else { return Ok(0) };
    let before = store::shown_by_cases(&mut tx, customer, cases).await?;
    let known = source.reports(customer, cases).await?;
    replace(&mut tx, customer, cases, &known.ended, &known.pending).await?;
    let plans: Vec<_> = known.plans.into_iter().collect();
    store::freeze(&mut tx, customer, &plans).await?;
    let after = store::shown_by_cases(&mut tx, customer, cases).await?;
    let mut differences = 0;
    if wrong == Wrong::Kept {
        for id in store::lacking_plans(&mut tx, customer, &plans).await? {
            report(&format!("test plan {id}: has results, but the catalog lacks it: {RESTORE}"));
            differences += 1;
        }
    }
    Ok(differences + finish(tx, wrong, &before, &after, report).await?)
}

/// Verifies what a project, its test sets and its subjects show.
async fn verify_project(
    db: &PgPool,
    source: &impl Source,
    wrong: Wrong,
    (customer, project): (CustomerId, ProjectId),
    report: &mut impl FnMut(&dyn Display),
) -> Result<u64, Fault> {
    let Some(mut tx) = lock(db, customer, project).await? else { return Ok(0) };
    let before = store::shown_by_project(&mut tx, customer, project).await?;
    let KnownExecutions { executions, reports } = source.executions(customer, project).await?;
    store::show_nothing(&mut tx, customer, project, &reports.pending).await?;
    for execution in &executions {
        execution_changed(&mut tx, customer, execution).await?;
    }
    for changed in &reports.ended {
        show_status(&mut tx, customer, changed).await?;
    }
    let after = store::shown_by_project(&mut tx, customer, project).await?;
    let mut differences = 0;
    if wrong == Wrong::Kept {
        for (noun, id) in store::lacking_records(&mut tx, customer, &executions).await? {
            report(&format!("{noun} {id}: has executions, but the catalog lacks it: {RESTORE}"));
            differences += 1;
        }
    }
    Ok(differences + finish(tx, wrong, &before, &after, report).await?)
}

/// Reports each test case that has results, but that the catalog lacks. Returns their number.
async fn find_lacking(
    db: &PgPool,
    source: &impl Source,
    report: &mut impl FnMut(&dyn Display),
) -> Result<u64, Fault> {
    let (mut differences, mut after) = (0, None);
    loop {
        let executed = source.executed(after).await?;
        let Some((customer, last, _)) = executed.last().copied() else { return Ok(differences) };
        after = Some((customer, last));
        for (id, project) in store::lacking_cases(db, &executed).await? {
            report(&format!(
                "test case {id}: has results in project {project}, but the catalog lacks it: {RESTORE}"
            ));
            differences += 1;
        }
    }
}

/// Locks a project against all other writers. Returns `None` if it was deleted.
async fn lock(
    db: &PgPool,
    customer: CustomerId,
    project: ProjectId,
) -> Result<Option<PgTransaction<'static>>, Fault> {
    let mut tx = begin(db).await?;
    match lock_exclusive(&mut tx, customer, project).await {
        Ok(()) => Ok(Some(tx)),
        Err(Fault::NotFound(_)) => Ok(None),
        Err(fault) => Err(fault),
    }
}

/// Reports the differences, and keeps what was changed if wrong records are repaired. Returns the
/// number of differences.
async fn finish(
    tx: PgTransaction<'static>,
    wrong: Wrong,
    before: &Shown,
    after: &Shown,
    report: &mut impl FnMut(&dyn Display),
) -> Result<u64, Fault> {
    let mut differences = 0;
    let mut records: Vec<_> = before.keys().chain(after.keys()).collect();
    records.sort_unstable();
    records.dedup();
    for record @ (noun, id) in records {
        let shown = |records: &Shown| records.get(record).unwrap_or(&Value::Null).clone();
        let (stored, right) = (shown(before), shown(after));
        if stored != right {
            report(&format!("{noun} {id}: shows {stored}, but should show {right}"));
            differences += 1;
        }
    }
    if differences > 0 && wrong == Wrong::Repaired {
        tx.commit().await?;
    } else {
        tx.rollback().await?;
    }
    Ok(differences)
}
