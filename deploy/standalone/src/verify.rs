//! Whether what is stored of executions, and what the catalog shows of them, is as the results say.

use std::fmt::Display;

use anyhow::Result;
use assay_runtime::connect_options;
use futures::TryStreamExt;
use secrecy::SecretString;
use sqlx::PgPool;

/// Tells of everything that is not as it should be, in the databases of the execution service and of
/// the catalog; says how much that is. To be asked while nothing is executed, or what is on its way
/// is told of, too.
pub async fn verify(
    execution: &SecretString,
    catalog: &SecretString,
    mut tell: impl FnMut(&dyn Display),
) -> Result<u64> {
    let execution = PgPool::connect_with(connect_options(execution)?).await?;
    let catalog = PgPool::connect_with(connect_options(catalog)?).await?;
    let mut differences = assay_execution::verify(&execution, &mut tell).await?;
    let mut all = std::pin::pin!(assay_execution::told(execution.clone()));
    while let Some(told) = all.try_next().await? {
        differences += assay_catalog::verify(
            &catalog,
            told.customer,
            &told.execution,
            &told.reports,
            &mut tell,
        )
        .await?;
    }
    Ok(differences)
}

/// Makes it so: at once in the execution service, and in the catalog as soon as it hears of it. Says
/// how many records of the execution service have changed.
pub async fn rebuild(execution: &SecretString) -> Result<u64> {
    let execution = PgPool::connect_with(connect_options(execution)?).await?;
    Ok(assay_execution::rebuild(&execution).await?)
}
