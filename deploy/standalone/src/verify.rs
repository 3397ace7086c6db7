//! Verification of stored execution data and of the catalog against the recorded results.

use std::fmt::Display;

use anyhow::Result;
use assay_runtime::connect_options;
use futures::TryStreamExt;
use secrecy::SecretString;
use sqlx::PgPool;

/// Compares the databases of the execution service and the catalog with the recorded results. Calls
/// `report` for each difference and returns their number. While tests are executed, changes in
/// flight are reported, too.
pub async fn verify(
    execution: &SecretString,
    catalog: &SecretString,
    mut report: impl FnMut(&dyn Display),
) -> Result<u64> {
    let execution = PgPool::connect_with(connect_options(execution)?).await?;
    let catalog = PgPool::connect_with(connect_options(catalog)?).await?;
    let mut differences = assay_execution::verify(&execution, &mut report).await?;
    let mut all = std::pin::pin!(assay_execution::published_states(execution.clone()));
    while let Some(published) = all.try_next().await? {
        differences += assay_catalog::verify(
            &catalog,
            published.customer,
            &published.execution,
            &published.reports,
            &mut report,
        )
        .await?;
    }
    Ok(differences)
}

/// Recomputes stored execution data from the results; the catalog follows by events. Returns the
/// number of changed records of the execution service.
pub async fn rebuild(execution: &SecretString) -> Result<u64> {
    let execution = PgPool::connect_with(connect_options(execution)?).await?;
    Ok(assay_execution::rebuild(&execution).await?)
}
