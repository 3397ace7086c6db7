//! Artifacts: files that belong to results, such as screenshots and logs.

pub(crate) mod depot;
mod link;
pub(crate) mod rules;
mod service;
pub(crate) mod store;
mod stray;

use assay_auth::SealConfig;
use assay_proto::{
    ArtifactId, CustomerId, ExecutionId, Fault, TestReportId,
    execution::{Artifact, Instance},
};
use assay_runtime::{Shares, begin};
use sqlx::PgPool;
use tonic::Status;
use url::Url;

use self::{
    depot::{Depot, DepotConfig, Pieces},
    link::{LinkConfig, Links},
    store::NewArtifact,
};
use crate::lease;

/// Where the artifacts are, and how they are reached.
#[derive(Clone)]
pub struct Artifacts {
    db: PgPool,
    depot: Depot,
    links: Links,
    /// Who notes files at once.
    shares: Shares,
}

/// How many files are noted at once: few enough to leave connections to the database to others.
const NOTES: usize = 4;

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

impl Artifacts {
    pub fn open(db: &PgPool, config: &ArtifactConfig) -> anyhow::Result<Self> {
        let (depot, links) = (Depot::open(&config.depot)?, Links::new(&config.links)?);
        Ok(Self { db: db.clone(), depot, links, shares: Shares::new(NOTES) })
    }

    /// Keeps a file; one of the same name is replaced once this one is there.
    pub(crate) async fn keep(&self, new: NewArtifact, file: Pieces) -> Result<Artifact, Status> {
        rules::check_name(&new.name)?;
        rules::check_content_type(&new.content_type)?;
        let id = ArtifactId::new();
        let NewArtifact { customer, execution, .. } = new;
        stray::note(&self.db, customer, execution, id).await?;
        match self.put(&new, id, file).await {
            Ok((size, replaced, expires)) => {
                if let Some(replaced) = replaced {
                    self.forget(customer, execution, replaced).await;
                }
                let uri = self.links.link(customer, id, &new.name, expires);
                let NewArtifact { name, content_type, .. } = new;
                Ok(Artifact { id: id.to_string(), name, content_type, size, uri })
            }
            Err(status) => {
                self.forget(customer, execution, id).await;
                Err(status)
            }
        }
    }

    /// Stores a file and notes it; says how large it is, which one it replaces, and when a link to
    /// it expires.
    async fn put(
        &self,
        new: &NewArtifact,
        id: ArtifactId,
        file: Pieces,
    ) -> Result<(i64, Option<ArtifactId>, i64), Status> {
        let size = self.depot.put(new.customer, new.execution, id, file).await?;
        let _share = self.shares.acquire(new.customer).await?;
        let (replaced, expires) = self.note(new, id, size).await?;
        Ok((size, replaced, expires))
    }

    /// Removes a file that nobody is to find any more. If that fails it is done later.
    async fn forget(&self, customer: CustomerId, execution: ExecutionId, id: ArtifactId) {
        let forgotten = async {
            self.depot.delete(customer, execution, id).await?;
            stray::forget(&self.db, customer, id).await
        };
        if let Err(fault) = forgotten.await {
            tracing::warn!(%fault, artifact.id = %id, "a file is left behind for a while");
        }
    }

    /// Removes the files that programs have left behind which ended before they were done.
    pub(crate) async fn sweep(&self) -> Result<(), Fault> {
        let mut after = None;
        loop {
            let files = stray::left_behind(&self.db, after).await?;
            let Some(last) = files.last() else { return Ok(()) };
            after = Some(last.artifact);
            for file in files {
                self.forget(file.customer, file.execution, file.artifact).await;
            }
        }
    }

    async fn note(
        &self,
        new: &NewArtifact,
        id: ArtifactId,
        size: i64,
    ) -> Result<(Option<ArtifactId>, i64), Fault> {
        let mut tx = begin(&self.db).await?;
        store::lock_execution(&mut tx, new.customer, new.execution).await?;
        if let Some(lease) = new.lease {
            lease::store::check_not_lost(&mut *tx, new.customer, lease).await?;
        }
        let replaced = store::replace(&mut tx, new, id, size).await?;
        stray::forget(&mut *tx, new.customer, id).await?;
        if let Some(replaced) = replaced {
            stray::note(&mut *tx, new.customer, new.execution, replaced).await?;
        }
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

    /// Removes the files of an execution for good.
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
