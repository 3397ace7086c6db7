//! Artifacts: files that belong to results, such as screenshots and logs.

mod depot;
mod link;
pub(crate) mod rules;
mod service;
pub(crate) mod store;

use std::pin::Pin;

use assay_auth::SealConfig;
use assay_proto::{
    ArtifactId, CustomerId, ExecutionId, Fault, LeaseId, TestReportId,
    execution::{Artifact, Instance},
};
use bytes::Bytes;
use futures::Stream;
use sqlx::PgPool;
use tonic::Status;
use url::Url;
use uuid::Uuid;

pub use self::depot::DepotConfig;
use self::{
    depot::Depot,
    link::{LinkConfig, Links},
};
use crate::lease;

/// The pieces of a file that is uploaded, as they come.
pub(crate) type Pieces = Pin<Box<dyn Stream<Item = Result<Bytes, Status>> + Send>>;

/// Where the artifacts are, and how they are reached.
#[derive(Clone)]
pub struct Artifacts {
    db: PgPool,
    depot: Depot,
    links: Links,
}

/// Where artifacts are kept, and what their links are like.
#[derive(clap::Args, Clone, Debug)]
pub struct ArtifactConfig {
    #[command(flatten)]
    pub depot: DepotConfig,
    #[command(flatten)]
    pub links: LinkConfig,
}

impl ArtifactConfig {
    /// Artifacts that are kept there, with links to this address that are signed by these keys.
    pub fn new(depot: DepotConfig, seal: SealConfig, public_url: Url) -> Self {
        Self { depot, links: LinkConfig { seal, public_url } }
    }
}

/// What an artifact is for.
pub(crate) struct Purpose {
    pub(crate) customer: CustomerId,
    pub(crate) execution: ExecutionId,
    /// What its name is unique in.
    pub(crate) owner: Uuid,
    /// The lease that the file is uploaded for; it must not be lost.
    pub(crate) lease: Option<LeaseId>,
    pub(crate) name: String,
    pub(crate) content_type: String,
}

impl Artifacts {
    pub fn open(db: &PgPool, config: &ArtifactConfig) -> anyhow::Result<Self> {
        let (depot, links) = (Depot::open(&config.depot)?, Links::new(&config.links)?);
        Ok(Self { db: db.clone(), depot, links })
    }

    /// Keeps a file; one of the same name is replaced once this one is there.
    pub(crate) async fn keep(&self, purpose: Purpose, file: Pieces) -> Result<Artifact, Status> {
        rules::check_name(&purpose.name)?;
        rules::check_content_type(&purpose.content_type)?;
        let id = ArtifactId::new();
        let size = self.depot.put(purpose.customer, purpose.execution, id, file).await?;
        match self.note(&purpose, id, size).await {
            Ok((replaced, expires)) => {
                if let Some(replaced) = replaced {
                    self.depot.forget(purpose.customer, purpose.execution, replaced).await;
                }
                let uri = self.links.link(purpose.customer, id, &purpose.name, expires);
                let Purpose { name, content_type, .. } = purpose;
                Ok(Artifact { id: id.to_string(), name, content_type, size, uri })
            }
            Err(fault) => {
                self.depot.forget(purpose.customer, purpose.execution, id).await;
                Err(fault.into())
            }
        }
    }

    async fn note(
        &self,
        purpose: &Purpose,
        id: ArtifactId,
        size: i64,
    ) -> Result<(Option<ArtifactId>, i64), Fault> {
        let mut tx = self.db.begin().await?;
        store::hold(&mut tx, purpose.customer, purpose.execution).await?;
        if let Some(lease) = purpose.lease {
            lease::check_not_lost(&mut *tx, purpose.customer, lease).await?;
        }
        let replaced = store::replace(&mut tx, purpose, id, size).await?;
        let expires = store::now(&mut *tx).await? + link::LIFETIME;
        tx.commit().await?;
        Ok((replaced, expires))
    }

    /// Puts links in the place of the names of artifacts. A name that nothing was stored under says
    /// nothing.
    pub(crate) async fn resolve(
        &self,
        customer: CustomerId,
        report: TestReportId,
        instance: &mut Instance,
    ) -> Result<(), Fault> {
        let names: Vec<String> =
            texts(instance).filter(|text| rules::is_name(text)).cloned().collect();
        if names.is_empty() {
            return Ok(());
        }
        let found = store::named(&self.db, customer, report, &names).await?;
        let expires = store::now(&self.db).await? + link::LIFETIME;
        for text in texts_mut(instance).filter(|text| rules::is_name(text)) {
            let id = found.get(text.as_str());
            *text = id.map_or_else(String::new, |id| self.links.link(customer, *id, text, expires));
        }
        for step in &mut instance.steps {
            step.screenshots.retain(|link| !link.is_empty());
        }
        Ok(())
    }

    /// Removes the files of an execution for good. Says whether there were any.
    pub(crate) async fn remove(
        &self,
        customer: CustomerId,
        execution: ExecutionId,
    ) -> Result<(), Fault> {
        self.depot.remove(customer, execution).await?;
        store::remove(&self.db, customer, execution).await
    }
}

/// What may be the name of an artifact.
fn texts(instance: &Instance) -> impl Iterator<Item = &String> {
    let of_steps =
        instance.steps.iter().flat_map(|step| step.screenshots.iter().chain([&step.thumbnail]));
    [
        &instance.artifacts_uri,
        &instance.report_uri,
        &instance.debug_log_uri,
        &instance.execution_log_uri,
        &instance.installation_log_uri,
    ]
    .into_iter()
    .chain(of_steps)
}

/// As [`texts`].
fn texts_mut(instance: &mut Instance) -> impl Iterator<Item = &mut String> {
    let of_steps = instance
        .steps
        .iter_mut()
        .flat_map(|step| step.screenshots.iter_mut().chain([&mut step.thumbnail]));
    [
        &mut instance.artifacts_uri,
        &mut instance.report_uri,
        &mut instance.debug_log_uri,
        &mut instance.execution_log_uri,
        &mut instance.installation_log_uri,
    ]
    .into_iter()
    .chain(of_steps)
}
