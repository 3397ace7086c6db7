//! Deletion of expired rows.

use std::time::Duration;

use assay_database::Database;
use assay_proto::Fault;
use assay_runtime::Runtime;
use sqlx::PgPool;

use crate::{audit, invitation, mail, password_link, revocation, signing_key, throttle};

const PERIOD: Duration = Duration::from_mins(10);

/// Starts to delete expired rows periodically. Replicas may do so concurrently.
pub(crate) fn spawn(runtime: &Runtime, database: &Database, audit_retention: Duration) {
    let failure = "failed to delete expired rows; will retry";
    let round = move |db| async move { delete_expired(&db, audit_retention).await };
    database.every(runtime, "upkeep", PERIOD, failure, round);
}

async fn delete_expired(db: &PgPool, audit_retention: Duration) -> Result<(), Fault> {
    revocation::prune(db).await?;
    signing_key::store::prune(db).await?;
    password_link::prune(db).await?;
    mail::prune(db).await?;
    throttle::prune(db).await?;
    invitation::store::prune(db).await?;
    while audit::prune(db, audit_retention).await? {}
    Ok(())
}
