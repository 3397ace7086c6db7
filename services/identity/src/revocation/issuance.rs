//! Transactions that create credentials or grants.

use assay_auth::UnconfirmedCaller;
use assay_proto::{Fault, Timestamp};
use sqlx::PgTransaction;

use super::{Revocations, store};

/// A transaction that creates a credential or a grant, such as an API token or a user.
///
/// It ends by comparing the caller's token with the latest committed revocations, while no other
/// transaction can record one. So every revocation of the caller either is committed before, and the
/// transaction fails; or it comes later, and affects what the transaction has created: a transaction
/// that deletes credentials does so after it has recorded its revocation.
///
/// The comparison comes last because revocations do. In the other order, a transaction that waits
/// for a row while it blocks revocations would deadlock with one that revokes the tokens of the row.
pub(crate) struct Issuance {
    revocations: Revocations,
    tx: PgTransaction<'static>,
    caller: UnconfirmedCaller,
}

impl Issuance {
    pub(super) fn new(
        revocations: Revocations,
        tx: PgTransaction<'static>,
        caller: UnconfirmedCaller,
    ) -> Self {
        Self { revocations, tx, caller }
    }

    pub(crate) fn tx(&mut self) -> &mut PgTransaction<'static> {
        &mut self.tx
    }

    /// Returns the time of issue of a token. See [`store::date_token`].
    pub(crate) async fn date_token(&mut self) -> Result<Timestamp, Fault> {
        let time = store::date_token(&mut self.tx).await?;
        self.confirm().await?;
        Ok(time)
    }

    /// Commits the transaction if the caller's token is not revoked.
    pub(crate) async fn commit(mut self) -> Result<(), Fault> {
        store::block_revocations(&mut self.tx).await?;
        self.confirm().await?;
        Ok(self.tx.commit().await?)
    }

    /// Like [`Issuance::commit`], for a transaction that also revokes tokens: returns it for that.
    pub(crate) async fn lock_revocations(mut self) -> Result<PgTransaction<'static>, Fault> {
        store::lock_revocations(&mut self.tx).await?;
        self.confirm().await?;
        Ok(self.tx)
    }

    async fn confirm(&mut self) -> Result<(), Fault> {
        self.revocations.catch_up(&mut self.tx).await?;
        self.revocations.0.verifier.confirm(&self.caller).await
    }
}
