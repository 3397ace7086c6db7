//! Starts one execution per idempotency key, however often a request is sent.

use assay_auth::Caller;
use assay_ledger::execution::{rules::IdempotentRequest, store};
use assay_proto::{ExecutionId, Fault};
use sqlx::PgPool;
use tonic::Status;

use crate::quota::{Kind, Quota};

/// Starts an execution, unless the same request has started one already. Refuses a key with which the
/// customer would have too many.
pub(crate) async fn start_once(
    (db, quota): (&PgPool, &Quota),
    caller: &Caller,
    request: Option<&IdempotentRequest>,
    start: impl Future<Output = Result<ExecutionId, Status>>,
) -> Result<ExecutionId, Status> {
    let Some(request) = request else { return start.await };
    if let Some(earlier) = started_by(db, caller, request).await? {
        return Ok(earlier);
    }
    let size = request.key.len() + request.request.len();
    quota.claim(caller.customer, Kind::Keys, size).await?;
    match start.await {
        Err(status) => match started_by(db, caller, request).await? {
            // A concurrent request with the same key was faster.
            Some(earlier) => Ok(earlier),
            None => Err(status),
        },
        started => started,
    }
}

/// Returns the execution that the request started when it was sent before.
async fn started_by(
    db: &PgPool,
    caller: &Caller,
    request: &IdempotentRequest,
) -> Result<Option<ExecutionId>, Fault> {
    match store::find_by_key(db, caller.customer, caller.user, &request.key).await? {
        Some((_, earlier)) if earlier != request.request => {
            let reason = "the Idempotency-Key was sent before, with another request".to_owned();
            Err(Fault::Refused { code: "idempotency_key_reused", reason })
        }
        earlier => Ok(earlier.map(|(id, _)| id)),
    }
}
