//! Verification of stored execution data and of the catalog against the recorded results.

use std::fmt::Display;

use anyhow::Result;
use assay_catalog::{Source, Wrong};
use assay_database::connect_options;
use assay_events::{KnownExecutions, KnownReports};
use assay_proto::{CustomerId, Fault, ProjectId, TestCaseId};
use secrecy::SecretString;
use sqlx::PgPool;

/// The database of the execution service.
struct Executions(PgPool);

impl Source for Executions {
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

async fn connect(database: &SecretString) -> Result<PgPool> {
    Ok(PgPool::connect_with(connect_options(database)?).await?)
}

/// Compares the database of the execution service with the recorded results, and that of the catalog
/// with both. Calls `report` for each difference and returns their number. While tests are executed,
/// changes that the catalog has not received yet are reported, too.
pub async fn verify(
    execution: &SecretString,
    catalog: &SecretString,
    mut report: impl FnMut(&dyn Display),
) -> Result<u64> {
    let (execution, catalog) = (connect(execution).await?, connect(catalog).await?);
    let differences = assay_execution::verify(&execution, &mut report).await?;
    let of_catalog =
        assay_catalog::verify(&catalog, &Executions(execution), Wrong::Kept, &mut report).await?;
    Ok(differences + of_catalog)
}

/// Recomputes stored execution data from the results, and the catalog from both. Returns the number of
/// changed records.
pub async fn rebuild(execution: &SecretString, catalog: &SecretString) -> Result<u64> {
    let (execution, catalog) = (connect(execution).await?, connect(catalog).await?);
    let repaired = assay_execution::rebuild(&execution).await?;
    let source = Executions(execution);
    Ok(repaired + assay_catalog::verify(&catalog, &source, Wrong::Repaired, |_| ()).await?)
}
