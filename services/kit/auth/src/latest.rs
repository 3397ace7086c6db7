//! The latest revocations, which are read in pages.

use std::{sync::Arc, time::Duration};

use assay_proto::identity::{ListRevocationsRequest, token_service_client::TokenServiceClient};
use assay_rpc::grpc::Channel;
use tokio::sync::Mutex;
use tonic::Status;

use crate::{caller::anonymous_within, revocations::Revocations};

/// Timeout of a read.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(2);

/// Reads the revocations that were committed before.
#[derive(Clone)]
pub(crate) struct LatestRevocations {
    identity: TokenServiceClient<Channel>,
    /// The sequence of the last revocation that was read.
    known: Arc<Mutex<i64>>,
}

impl LatestRevocations {
    /// Reads from the identity service. Nothing is known yet.
    pub(crate) fn of(identity: TokenServiceClient<Channel>) -> Self {
        Self { identity, known: Arc::default() }
    }

    /// Reads new revocations, page by page. The identity service numbers them in the order in which
    /// they become visible, so none appears before a known one.
    pub(crate) async fn read(&self, revocations: &Revocations) -> Result<(), Status> {
        let mut known = self.known.lock().await;
        loop {
            let request = anonymous_within(TIMEOUT, ListRevocationsRequest { after: *known });
            let page = self.identity.clone().list_revocations(request).await?.into_inner();
            for revocation in &page.items {
                revocations.add(revocation);
            }
            match page.items.last() {
                Some(last) if last.sequence > *known => *known = last.sequence,
                _ => return Ok(()),
            }
            revocations.remove_expired(page.expired_until);
        }
    }
}
