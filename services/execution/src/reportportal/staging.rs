//! Requests that are stored until their launch is over. Those that arrive at the same time share a
//! statement.

use assay_fair::{Gather, Shares};
use assay_proto::{CustomerId, Fault};
use sqlx::{PgExecutor, PgPool};

use super::{
    body::{Entry, Kind},
    store,
};

/// Requests, of which those of one customer are gathered.
pub(super) type Staging = Gather<CustomerId, Entry, ()>;

pub(super) fn gather(db: &PgPool, shares: &Shares) -> Staging {
    let db = db.clone();
    Gather::new(shares, move |customer, entries: Vec<Entry>| {
        let db = db.clone();
        async move {
            let ended = store::stage(&db, customer, &entries).await?;
            let outcome = |entry: &Entry| match entry.kind {
                Kind::Start if ended.contains(&entry.launch) => Err(has_ended()),
                _ => Ok(()),
            };
            Ok(entries.iter().map(outcome).collect())
        }
    })
}

/// Stores requests at once, all or none.
pub(super) async fn stage(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    entries: &[Entry],
) -> Result<(), Fault> {
    store::stage(db, customer, entries).await.map(drop)
}

fn has_ended() -> Fault {
    let reason = "the launch has ended; it accepts no new items".to_owned();
    Fault::Conflict { code: "launch_ended", reason }
}
