//! Verification of stored execution data and of the catalog against the recorded results, and of what each service has
//! stored of the records of others.

mod customers;
mod members;
mod projects;

use std::fmt::Display;

use anyhow::Result;
use assay_catalog::{Executed, Source, Wrong};
use assay_database::command_options;
use assay_events::{KnownExecutions, KnownReports, search_again};
use assay_proto::{CustomerId, Fault, ProjectId, TestCaseId};
use secrecy::SecretString;
use sqlx::{PgPool, postgres::PgPoolOptions};

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

/// The databases of the services.
struct Databases {
    identity: PgPool,
    catalog: PgPool,
    execution: PgPool,
    notification: PgPool,
}

/// Connects to a database, with one connection for a transaction and one for other statements meanwhile: all of an
/// Assay may leave few.
pub(crate) async fn connect(database: &SecretString) -> Result<PgPool> {
    let pool = PgPoolOptions::new().max_connections(2);
    Ok(pool.connect_with(command_options(database)?).await?)
}

impl Databases {
    async fn connect(
        [identity, catalog, execution, notification]: [&SecretString; 4],
    ) -> Result<Self> {
        Ok(Self {
            identity: connect(identity).await?,
            catalog: connect(catalog).await?,
            execution: connect(execution).await?,
            notification: connect(notification).await?,
        })
    }

    /// Closes the connections. Those of a pool that is dropped end some time later.
    async fn close(self) {
        for db in [self.identity, self.catalog, self.execution, self.notification] {
            db.close().await;
        }
    }
}

/// The remedy for a record that was deleted after the backup from which its service was restored: other services keep
/// the deletion.
const DELETE_AGAIN: &str = "delete it again";

/// The remedy for a deletion that a service has missed.
const SEARCHED: &str = "it applies the deletion within a day, or within five minutes of `rebuild`";

/// The number of executions, projects and customers that were compared, and of differences.
#[derive(Clone, Copy, Debug)]
pub struct Compared {
    pub executions: u64,
    pub projects: u64,
    pub customers: u64,
    pub differences: u64,
}

/// Compares the database of the execution service with the recorded results, that of the catalog with both, and what
/// the services have stored of the records of others. The databases are those of identity, the catalog, the execution
/// and the notification service. Calls `report` for each difference. While Assay is used, changes that a service has
/// not received yet are reported, too.
pub async fn verify(
    databases: [&SecretString; 4],
    mut report: impl FnMut(&dyn Display),
) -> Result<Compared> {
    let databases = Databases::connect(databases).await?;
    let compared = compare(&databases, &mut report).await;
    databases.close().await;
    compared
}

async fn compare(databases: &Databases, mut report: impl FnMut(&dyn Display)) -> Result<Compared> {
    let (executions, of_executions) =
        assay_execution::verify(&databases.execution, &mut report).await?;
    let source = Executions(databases.execution.clone());
    let (projects, of_catalog) =
        assay_catalog::verify(&databases.catalog, &source, Wrong::Kept, &mut report).await?;
    let of_projects = projects::compare(databases, Wrong::Kept, &mut report).await?;
    let (customers, of_customers) = customers::compare(databases, Wrong::Kept, &mut report).await?;
    let of_members = members::compare(databases, &mut report).await?;
    let differences = of_executions + of_catalog + of_projects + of_customers + of_members;
    Ok(Compared { executions, projects, customers, differences })
}

/// Recomputes stored execution data from the results, the catalog from both, and what services have stored of the
/// records of others. Returns the number of changed records.
pub async fn rebuild(databases: [&SecretString; 4]) -> Result<u64> {
    let databases = Databases::connect(databases).await?;
    let repaired = repair(&databases).await;
    databases.close().await;
    repaired
}

async fn repair(databases: &Databases) -> Result<u64> {
    let repaired = assay_execution::rebuild(&databases.execution).await?;
    let of_projects = projects::compare(databases, Wrong::Repaired, |_| ()).await?;
    let source = Executions(databases.execution.clone());
    let (_, of_catalog) =
        assay_catalog::verify(&databases.catalog, &source, Wrong::Repaired, |_| ()).await?;
    let (_, of_customers) = customers::compare(databases, Wrong::Repaired, |_| ()).await?;
    for db in [&databases.catalog, &databases.execution, &databases.notification] {
        search_again(db).await?;
    }
    Ok(repaired + of_projects + of_catalog + of_customers)
}
