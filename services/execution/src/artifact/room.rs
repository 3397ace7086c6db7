//! Room for files in the quota of their customer. It is claimed in the row of a file before the file is stored, where
//! all replicas count it, and is free when the row goes.

use assay_database::begin;
use assay_proto::{ArtifactId, CustomerId, ExecutionId, Fault};
use assay_storage::{Claim, Room};
use futures::FutureExt;

use super::{Artifacts, stray};
use crate::quota::Kind;

impl Artifacts {
    /// Records files before they are stored, and claims room of these sizes for them. Refuses a customer that has less
    /// left.
    pub(super) async fn claim(
        &self,
        customer: CustomerId,
        execution: ExecutionId,
        files: &[(ArtifactId, i64)],
    ) -> Result<(), Fault> {
        let _share = self.shares.acquire(customer).await?;
        let mut tx = begin(&self.db).await?;
        self.quota.room(&mut tx, customer, files.iter().map(|(_, size)| size).sum()).await?;
        stray::insert(&mut *tx, customer, execution, files).await?;
        Ok(tx.commit().await?)
    }

    /// Returns the claimed room of a file, which grows with it; none without a limit.
    pub(super) fn room(&self, customer: CustomerId, id: ArtifactId, claimed: u64) -> Option<Room> {
        self.quota.limit(Kind::Artifacts)?;
        let this = self.clone();
        let more: Claim = Box::new(move |wanted| {
            let this = this.clone();
            async move { this.claim_more(customer, id, wanted).await }.boxed()
        });
        Some(Room { claimed, more })
    }

    /// Claims room for up to this number of bytes more. Returns for how many, at least one.
    async fn claim_more(
        &self,
        customer: CustomerId,
        id: ArtifactId,
        wanted: u64,
    ) -> Result<u64, Fault> {
        let wanted = i64::try_from(wanted).map_err(Fault::internal)?;
        let _share = self.shares.acquire(customer).await?;
        let mut tx = begin(&self.db).await?;
        let left = self.quota.room(&mut tx, customer, 1).await?;
        let claimed = left.map_or(wanted, |left| left.min(wanted));
        stray::grow(&mut *tx, customer, id, claimed).await?;
        tx.commit().await?;
        Ok(claimed.unsigned_abs())
    }
}
