//! Compares what is stored of executions and reports with the results that it was made of, and mends
//! it. Nothing should ever differ; this is for those who want to know, and for the day after a
//! restored backup or a mistake.

mod store;

use std::fmt::Display;

use assay_events::{ExecutionAction, ReportsAction, publish_all};
use assay_proto::{
    CustomerId, ExecutionId, Fault,
    events::{ExecutionChanged, ReportsChanged},
};
use assay_runtime::begin;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use sqlx::PgPool;

use crate::{
    execution,
    settle::events::{events, reports_changed},
    test_report,
};

const REBUILT: ExecutionAction = ExecutionAction::Rebuilt;

/// What other services are told of an execution, and of its reports that have ended.
pub struct Told {
    pub customer: CustomerId,
    pub execution: ExecutionChanged,
    pub reports: Vec<ReportsChanged>,
}

/// Tells of each difference between what is stored and the results; says how many there are.
pub async fn verify(db: &PgPool, mut tell: impl FnMut(&dyn Display)) -> Result<u64, Fault> {
    let (mut differences, mut after) = (0, None);
    loop {
        let slice = store::executions(db, after).await?;
        let Some(last) = slice.last().copied() else { return Ok(differences) };
        for difference in store::differences(db, &slice).await? {
            tell(&difference);
            differences += 1;
        }
        if slice.len() < store::SLICE {
            for difference in store::counter_differences(db).await? {
                tell(&difference);
                differences += 1;
            }
            return Ok(differences);
        }
        after = Some(last);
    }
}

/// Makes what is stored anew from the results, and tells the other services of every execution again.
/// Each execution is mended in a transaction of its own, locked as if results came for it. Says how
/// many records have changed.
pub async fn rebuild(db: &PgPool) -> Result<u64, Fault> {
    let (mut mended, mut after) = (0, None);
    loop {
        let slice = store::executions(db, after).await?;
        for (customer, id) in &slice {
            let mut tx = begin(db).await?;
            let Some(project) = store::lock(&mut tx, *customer, *id).await? else { continue };
            mended += store::mend(&mut tx, *customer, *id).await?;
            let state = execution::store::get(&mut *tx, *customer, project, *id).await?;
            let ended = test_report::store::ended(&mut tx, *customer, *id).await?;
            let actions = (REBUILT, ReportsAction::Rebuilt);
            let events = events(*customer, &state, &state.event(REBUILT), actions, &ended)?;
            publish_all(&mut tx, &events).await?;
            tx.commit().await?;
        }
        if slice.len() < store::SLICE {
            return Ok(mended + store::mend_counters(db).await?);
        }
        after = slice.last().copied();
    }
}

/// What others have been told of all executions, in the end.
pub fn told(db: PgPool) -> impl Stream<Item = Result<Told, Fault>> + Send {
    let slices = stream::try_unfold((db.clone(), None, false), async |(db, after, is_last)| {
        if is_last {
            return Ok(None);
        }
        let slice = store::executions(&db, after).await?;
        let (after, is_last) = (slice.last().copied(), slice.len() < store::SLICE);
        Ok::<_, Fault>(Some((stream::iter(slice).map(Ok), (db, after, is_last))))
    });
    slices.try_flatten().try_filter_map(move |(customer, id)| {
        let db = db.clone();
        async move { told_one(&db, customer, id).await }
    })
}

async fn told_one(
    db: &PgPool,
    customer: CustomerId,
    id: ExecutionId,
) -> Result<Option<Told>, Fault> {
    let mut tx = begin(db).await?;
    let Some(project) = store::lock(&mut tx, customer, id).await? else { return Ok(None) };
    let state = execution::store::get(&mut *tx, customer, project, id).await?;
    let ended = test_report::store::ended(&mut tx, customer, id).await?;
    let reports = reports_changed(&state, ReportsAction::Rebuilt, &ended);
    Ok(Some(Told { customer, execution: state.event(REBUILT), reports }))
}
