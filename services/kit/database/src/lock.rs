//! Locks for work that only one replica of a service does at a time.

use std::time::Duration;

use assay_proto::Fault;
use sqlx::{Connection as _, PgConnection, PgPool};
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::ACQUIRE_TIMEOUT;

/// Interval in which the holder shows that it is alive, and the limit for the answer.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// Time without a heartbeat after which PostgreSQL releases the lock.
const RELEASE: &str = "set idle_session_timeout = '20s'";

/// Does work while holding the PostgreSQL advisory lock with this name. Returns `None` if another
/// replica holds it.
///
/// A connection of its own holds the lock, and is used every five seconds while the work goes on. One of the pool would
/// be closed with its prepared statements, and its successor would plan them again after each round of work. If the
/// program is frozen (stopped, or on a paused machine), the connection stays open, because the kernel still
/// answers for it, but its use ends: after 20 seconds PostgreSQL closes the session, which releases the lock.
/// If the machine vanishes, TCP keepalives have the same effect in the same time. A holder that has lost the
/// lock notices that with its next heartbeat; the work is then cancelled, and this fails. Until then both
/// replicas may do a part of the work, which therefore has to be safe to repeat.
///
/// A transaction instead of a session would hold back vacuum for as long as the work takes, and a lease in
/// a row would need a clock and the same heartbeat.
pub async fn exclusively<T>(
    db: &PgPool,
    name: &str,
    work: impl Future<Output = Result<T, Fault>>,
) -> Result<Option<T>, Fault> {
    let options = db.connect_options();
    let connected = PgConnection::connect_with(&options);
    let mut connection =
        timeout(ACQUIRE_TIMEOUT, connected).await.map_err(|_| sqlx::Error::PoolTimedOut)??;
    sqlx::query(RELEASE).execute(&mut connection).await?;
    // Right after a failover, the address may lead to a standby.
    let locked = sqlx::query_scalar(
        "select not pg_is_in_recovery() and pg_try_advisory_lock(hashtextextended($1, 0))",
    );
    let locked: bool = locked.bind(name).fetch_one(&mut connection).await?;
    let done = if locked {
        tokio::select! {
            lost = beat(&mut connection) => return Err(lost),
            done = work => Some(done),
        }
    } else {
        None
    };
    // PostgreSQL releases the locks of a closed connection, but a moment later: the next holder may come at once.
    let released = timeout(HEARTBEAT, async {
        sqlx::query("select pg_advisory_unlock_all()").execute(&mut connection).await?;
        connection.close().await
    });
    if !matches!(released.await, Ok(Ok(()))) {
        tracing::debug!(lock = name, "cannot close the connection of a lock");
    }
    done.transpose()
}

/// Uses the connection regularly, until that fails.
async fn beat(connection: &mut PgConnection) -> Fault {
    let mut beats = interval(HEARTBEAT);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    beats.tick().await;
    loop {
        beats.tick().await;
        match timeout(HEARTBEAT, connection.ping()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return error.into(),
            Err(_) => return Fault::Unavailable("the database"),
        }
    }
}
