//! Requests that make one execution, however often they are sent.

use assay_auth::Caller;
use assay_proto::{ExecutionId, Fault};
use sqlx::PgPool;
use tonic::Status;

use super::{rules, store};

/// A request with the key that its client has given it.
pub(crate) struct Once {
    pub(crate) key: String,
    /// The request without its key: the key must not come with another one.
    pub(crate) request: Vec<u8>,
}

impl Once {
    /// Checks the key of a request that has one.
    pub(crate) fn key(key: Option<String>) -> Result<Option<String>, Fault> {
        key.as_deref().map(rules::check_idempotency_key).transpose()?;
        Ok(key)
    }

    /// Starts an execution, unless the same request has started one before.
    pub(crate) async fn start(
        once: Option<&Self>,
        db: &PgPool,
        caller: &Caller,
        start: impl Future<Output = Result<ExecutionId, Status>>,
    ) -> Result<ExecutionId, Status> {
        let Some(once) = once else { return start.await };
        if let Some(earlier) = once.earlier(db, caller).await? {
            return Ok(earlier);
        }
        match start.await {
            Err(status) => match once.earlier(db, caller).await? {
                // A request that ran at the same time was faster.
                Some(earlier) => Ok(earlier),
                None => Err(status),
            },
            started => started,
        }
    }

    /// Returns the execution that this request has started when it was sent before.
    async fn earlier(&self, db: &PgPool, caller: &Caller) -> Result<Option<ExecutionId>, Fault> {
        let (customer, user) = (caller.customer, caller.user);
        match store::started_once(db, customer, user, &self.key).await? {
            Some((_, request)) if request != self.request => {
                let reason = "the Idempotency-Key was sent before, with another request".to_owned();
                Err(Fault::Refused { code: "idempotency_key_reused", reason })
            }
            earlier => Ok(earlier.map(|(id, _)| id)),
        }
    }
}
