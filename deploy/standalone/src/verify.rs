//! Verification of stored execution data and of the catalog against the recorded results.

use std::fmt::Display;

use anyhow::Result;
use assay_catalog::{Executed, Source, Wrong};
use assay_database::command_options;
use assay_events::{KnownExecutions, KnownReports};
use assay_proto::{CustomerId, Fault, ProjectId, TestCaseId};
use secrecy::SecretString;
use sqlx::PgPool;

/// The database of the execution service.
struct Executions(PgPool);

impl Source for Executions {
    async fn executed(
        &self,
        after: Option<(CustomerId, TestCaseId)>,
    ) -> Result<Vec<Executed>, Fault> {
        assay_execution::executed_cases(&self.0, after).await
    }

    async fn reports(
        &self,
        customer: CustomerId,
        cases: &[TestCaseId],
    ) -> Result<KnownReports, Fault> {
        assay_execution::reports_of(&self.0, customer, cases).await
    }

    async fn executions(
        &self,
        customer: CustomerId,
        project: ProjectId,
    ) -> Result<KnownExecutions, Fault> {
        assay_execution::executions_of(&self.0, customer, project).await
    }
}

/// The number of executions and projects that were compared, and of differences.
#[derive(Clone, Copy, Debug)]
pub struct Compared {
    pub executions: u64,
    pub projects: u64,
    pub differences: u64,
}

pub(crate) async fn connect(database: &SecretString) -> Result<PgPool> {
    Ok(PgPool::connect_with(command_options(database)?).await?)
}

/// Compares the database of the execution service with the recorded results, and that of the catalog
/// with both. Calls `report` for each difference. While tests are executed, changes that the catalog has
/// not received yet are reported, too.
pub async fn verify(
    execution: &SecretString,
    catalog: &SecretString,
    mut report: impl FnMut(&dyn Display),
) -> Result<Compared> {
    let (execution, catalog) = (connect(execution).await?, connect(catalog).await?);
    let (executions, differences) = assay_execution::verify(&execution, &mut report).await?;
    let (projects, of_catalog) =
        assay_catalog::verify(&catalog, &Executions(execution.clone()), Wrong::Kept, &mut report)
            .await?;
    let of_retention = compare_retentions(&execution, &catalog, Wrong::Kept, &mut report).await?;
    let differences = differences + of_catalog + of_retention;
    Ok(Compared { executions, projects, differences })
}

/// Compares how long results are kept with what the catalog has. Returns the number of differences.
async fn compare_retentions(
    execution: &PgPool,
    catalog: &PgPool,
    wrong: Wrong,
    mut report: impl FnMut(&dyn Display),
) -> Result<u64> {
    let (mut differences, mut after) = (0, None);
    loop {
        let known = assay_catalog::retentions(catalog, after).await?;
        let Some(last) = known.last() else { return Ok(differences) };
        after = Some((last.customer, last.project));
        let repairs = wrong == Wrong::Repaired;
        for difference in assay_execution::compare_retentions(execution, &known, repairs).await? {
            report(&difference);
            differences += 1;
        }
    }
}

/// Recomputes stored execution data from the results, and the catalog from both. Returns the number of
/// changed records.
pub async fn rebuild(execution: &SecretString, catalog: &SecretString) -> Result<u64> {
    let (execution, catalog) = (connect(execution).await?, connect(catalog).await?);
    let repaired = assay_execution::rebuild(&execution).await?;
    let of_retention = compare_retentions(&execution, &catalog, Wrong::Repaired, |_| ()).await?;
    let source = Executions(execution);
    let (_, of_catalog) = assay_catalog::verify(&catalog, &source, Wrong::Repaired, |_| ()).await?;
    Ok(repaired + of_retention + of_catalog)
}
