//! Readiness of a replica that has lost its database.
//!
//! Such a replica fails all calls, so callers have to use the others. If no replica reaches the
//! database, however, all have to stay: an orchestrator that takes every replica away makes the outage
//! longer, and answers without a reason. A replica cannot distinguish these cases alone. So each one
//! that reaches the database says so on NATS every few seconds, and one that does not reach it is not
//! ready as long as it receives that from others. Without NATS, or without others, it stays ready.

use std::time::Duration;

use async_nats::{Client, connection::State};
use futures::StreamExt as _;
use sqlx::{Connection as _, Error, PgConnection, postgres::PgConnectOptions};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use uuid::Uuid;

use super::Database;
use assay_runtime::Runtime;

/// Interval of probes.
const INTERVAL: Duration = Duration::from_secs(3);

/// Maximum time of a probe, and of a message to the other replicas.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// Time without the database after which a replica is not ready.
const LOST_AFTER: Duration = Duration::from_secs(10);

/// Age up to which a message shows that another replica reaches the database: shorter than
/// [`LOST_AFTER`], so that replicas which lose it together do not believe each other.
const RECENT: Duration = Duration::from_secs(6);

impl Database {
    /// Makes the program not ready while it has lost the database and other replicas have not.
    pub fn watch_reachability(&self, runtime: &Runtime, nats: &Client) {
        let (database, client, stopping) = (self.clone(), nats.clone(), runtime.stopping());
        let program = runtime.name().strip_prefix("assay-").unwrap_or(runtime.name());
        let subject = format!("assay.databases.{program}");
        runtime.spawn("database reachability", async move {
            let watched = async {
                database.ready().await;
                watch(&database, &client, subject).await
            };
            stopping.run_until_cancelled(watched).await.unwrap_or(Ok(()))
        });
    }
}

/// Probes the database and exchanges messages with the other replicas, until dropped.
async fn watch(database: &Database, client: &Client, subject: String) -> anyhow::Result<()> {
    let (id, options) = (Uuid::now_v7(), database.pool.connect_options());
    let mut messages = client.subscribe(subject.clone()).await?;
    let mut ticks = interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut state, mut was_ready) = (Reachability::default(), true);
    loop {
        tokio::select! {
            Some(message) = messages.next() => {
                if message.payload != id.as_bytes()[..] {
                    state.heard = Some(Instant::now());
                }
                continue;
            }
            _ = ticks.tick() => {}
        }
        let is_reachable = probe(&options).await;
        state.probed(Instant::now(), is_reachable);
        // The client would send later what it cannot send now.
        if is_reachable && client.connection_state() == State::Connected {
            let sent = client.publish(subject.clone(), id.as_bytes().to_vec().into());
            let _ = timeout(PROBE_TIMEOUT, sent).await;
        }
        let is_ready = state.is_ready(Instant::now());
        if is_ready != was_ready {
            was_ready = is_ready;
            database.gate.set(is_ready);
            tracing::warn!(is_ready, "the database is lost for this replica only, or is back");
        }
    }
}

/// Whether a new connection to the database can be used. One that the server refuses counts, such as
/// one too many.
async fn probe(options: &PgConnectOptions) -> bool {
    let usable = async {
        let mut connection = PgConnection::connect_with(options).await?;
        let is_standby = sqlx::query_scalar("select pg_is_in_recovery()");
        let is_standby: bool = is_standby.fetch_one(&mut connection).await?;
        connection.close().await?;
        Ok(!is_standby)
    };
    match timeout(PROBE_TIMEOUT, usable).await {
        Ok(Ok(is_usable)) => is_usable,
        Ok(Err(Error::Database(_))) => true,
        Ok(Err(_)) | Err(_) => false,
    }
}

/// The knowledge of a replica about the database.
#[derive(Default)]
struct Reachability {
    /// Time of the first of the latest probes, if all of them failed.
    lost: Option<Instant>,
    /// Time of the last message of another replica that reaches the database.
    heard: Option<Instant>,
}

impl Reachability {
    fn probed(&mut self, now: Instant, is_reachable: bool) {
        self.lost = if is_reachable { None } else { self.lost.or(Some(now)) };
    }

    fn is_ready(&self, now: Instant) -> bool {
        let is_lost = self.lost.is_some_and(|lost| now - lost >= LOST_AFTER);
        let is_reached = self.heard.is_some_and(|heard| now - heard < RECENT);
        !is_lost || !is_reached
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_replica_that_alone_has_lost_its_database_is_not_ready() {
        let start = Instant::now();
        for (lost, heard, is_ready) in [
            (None, None, true),
            (None, Some(29), true),
            // The probes of a few seconds have failed.
            (Some(25), Some(29), true),
            (Some(20), Some(29), false),
            (Some(1), Some(25), false),
            // The others have lost it at about the same time.
            (Some(20), Some(22), true),
            (Some(1), None, true),
        ] {
            let at = |seconds: u64| start + Duration::from_secs(seconds);
            let state = Reachability { lost: lost.map(at), heard: heard.map(at) };
            assert_eq!(state.is_ready(at(30)), is_ready, "{lost:?} {heard:?}");
        }
    }

    #[test]
    fn the_first_failed_probe_counts_until_one_succeeds() {
        let (start, mut state) = (Instant::now(), Reachability::default());
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        state.probed(at(1), false);
        state.probed(at(4), false);
        assert_eq!(state.lost, Some(at(1)));
        state.probed(at(7), true);
        assert_eq!(state.lost, None);
    }
}
