//! Hands leases over to an engine: adds the records of the catalog, or returns the work to the
//! queue.

use std::{collections::HashSet, slice};

use assay_auth::Caller;
use assay_proto::{
    Batch as _, CustomerId, Fault, LeaseId,
    execution::{CompleteLeaseInput, Lease, LeaseBatch},
};
use assay_rpc::list::Batches;
use futures::{StreamExt, stream};
use sqlx::PgPool;
use tonic::{Code, Response, Status};

use super::{
    end::{complete, release},
    records::AutomationRecords,
};
use crate::{catalog::Catalog, pool::Taken, queue::Queue};

/// The comment on a report that no engine can run.
const UNREADABLE: &str = "Not run: its test plan, subject or environment was deleted, or cannot be \
    read. Save their secrets again, or ask the operator for the log of the catalog.";

/// The comment on a report whose value of a pool cannot be decrypted.
const UNREADABLE_VALUE: &str = "Not run: its value of a pool cannot be read. Save the secrets of the pool again, or \
    ask the operator for the log of the execution service.";

/// Whether a call to the catalog may succeed later, or for another caller.
fn is_transient(status: &Status) -> bool {
    !matches!(
        status.code(),
        Code::Internal
            | Code::DataLoss
            | Code::Unknown
            | Code::NotFound
            | Code::InvalidArgument
            | Code::FailedPrecondition
            | Code::OutOfRange
            | Code::Unimplemented
    )
}

/// Reads the records that an engine needs for its leases. If some cannot be read, removes their
/// leases from `leases` and ends the reports as engine failures. If this fails, all of `leases` are to be given back:
/// work that is left to expire counts as lost by an engine.
pub(crate) async fn read_records(
    db: &PgPool,
    queue: &Queue,
    catalog: &Catalog,
    caller: &Caller,
    leases: &mut Vec<Lease>,
) -> Result<AutomationRecords, Status> {
    match AutomationRecords::read(catalog, caller, leases).await {
        Err(status) if !is_transient(&status) => {}
        done => return done,
    }
    let (mut records, mut unreadable) = (AutomationRecords::default(), HashSet::new());
    for lease in leases.iter() {
        match AutomationRecords::read(catalog, caller, slice::from_ref(lease)).await {
            Ok(of_lease) => records.extend(of_lease),
            Err(status) if is_transient(&status) => return Err(status),
            Err(status) => {
                tracing::warn!(%status, lease.id = %lease.id, "work cannot be handed over");
                fail(db, queue, caller.customer, lease, UNREADABLE).await?;
                unreadable.insert(lease.id.clone());
            }
        }
    }
    leases.retain(|lease| !unreadable.contains(&lease.id));
    Ok(records)
}

/// Removes the leases from `leases` that have no usable value of their pool: ends the reports of those whose value
/// cannot be read as engine failures, and gives back those whose value was removed, to take another one.
pub(crate) async fn leave_out(
    db: &PgPool,
    queue: &Queue,
    customer: CustomerId,
    leases: &mut Vec<Lease>,
    taken: &Taken,
) -> Result<(), Fault> {
    for lease in leases.iter().filter(|lease| taken.unreadable.contains(&lease.id)) {
        fail(db, queue, customer, lease, UNREADABLE_VALUE).await?;
    }
    leases.retain(|lease| !taken.unreadable.contains(&lease.id));
    let removed = leases.extract_if(.., |lease| taken.removed.contains(&lease.id));
    give_back(db, queue, customer, &removed.collect::<Vec<_>>()).await;
    Ok(())
}

/// Ends the report of a lease as an engine failure.
async fn fail(
    db: &PgPool,
    queue: &Queue,
    customer: CustomerId,
    lease: &Lease,
    comment: &str,
) -> Result<(), Fault> {
    let id = LeaseId::from_record(&lease.id)?;
    let failure = CompleteLeaseInput { comment: Some(comment.to_owned()), engine_failure: true };
    complete(db, queue, customer, id, &failure).await
}

/// Returns leases with their records, one in each message. Each message is made when it is sent,
/// because all of them together may be large.
pub(crate) fn response(
    leases: Vec<Lease>,
    records: AutomationRecords,
) -> Response<Batches<LeaseBatch>> {
    let leases = leases
        .into_iter()
        .map(move |lease| Ok(LeaseBatch::render(&[records.complete(lease)], None)?));
    Response::new(stream::iter(leases).boxed())
}

/// Releases leases that could not be handed over. The reconciler releases those for which this
/// fails.
pub(crate) async fn give_back(db: &PgPool, queue: &Queue, customer: CustomerId, leases: &[Lease]) {
    for lease in leases {
        let released = async {
            let id = LeaseId::from_record(&lease.id)?;
            release(db, queue, customer, id).await
        };
        if let Err(fault) = released.await {
            tracing::warn!(error = %fault, lease.id = %lease.id, "a lease is left to expire");
        }
    }
}
