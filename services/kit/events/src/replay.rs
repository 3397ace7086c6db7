//! Publishes events again that NATS has lost.

use std::{str::FromStr, time::Duration};

use assay_proto::{Fault, Timestamp};
use serde::{Deserialize as _, de::IntoDeserializer as _};
use sqlx::{Error, PgPool};

use crate::connection::within;

/// Number of events in a batch: small enough that the relay publishes the first ones while the last
/// are still searched, and that locks are short.
const BATCH: i64 = 1000;

/// Maximum duration of a statement.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum duration in seconds, a hundred years. More is a mistake.
const LONGEST: u64 = 100 * 366 * 24 * 3600;

/// A moment in the past: a duration ago, or a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Since {
    Ago(Duration),
    Time(Timestamp),
}

impl FromStr for Since {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(ago) = duration(text) {
            return Ok(Self::Ago(ago));
        }
        let time = Timestamp::deserialize(text.into_deserializer());
        time.map(Self::Time).map_err(|_: serde::de::value::Error| {
            "expected a duration such as 90m, 2h or 3d, or a time such as 2026-11-20T23:00:00Z"
                .to_owned()
        })
    }
}

/// Parses a whole number of seconds, minutes, hours, days or weeks, such as `90m`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let seconds = [("s", 1), ("m", 60), ("h", 3600), ("d", 24 * 3600), ("w", 7 * 24 * 3600)];
    let read = seconds.into_iter().find_map(|(unit, seconds)| {
        let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
        number.checked_mul(seconds).filter(|total| *total <= LONGEST)
    });
    read.map(Duration::from_secs).ok_or_else(|| "expected a duration such as 30s or 2h".to_owned())
}

/// The result of a replay.
#[derive(Clone, Copy, Debug)]
pub struct Replayed {
    /// Number of events that are published again.
    pub events: u64,
    pub since: Timestamp,
    /// Time at which the oldest event in the outbox was published.
    pub oldest: Option<Timestamp>,
    /// Number of events that had not been published before.
    pub waiting: i64,
}

/// Publishes all events again that were published since then, in the same order. Consumers skip
/// those that they have applied.
///
/// The relay starts while this runs. If it fails half-way, it can be repeated.
pub async fn replay(db: &PgPool, since: Since) -> Result<Replayed, Fault> {
    let (ago, time) = match since {
        Since::Ago(ago) => (Some(ago.as_secs_f64()), None),
        Since::Time(time) => (None, Some(time)),
    };
    let range = sqlx::query_as(
        "select coalesce($2, now() - make_interval(secs => $1)), now(),
                (select min(published_at) from outbox where published_at is not null),
                (select count(*) from outbox where published_at is null)",
    );
    let range = within(STATEMENT_TIMEOUT, range.bind(ago).bind(time).fetch_one(db)).await?;
    let (since, until, oldest, waiting): (Timestamp, Timestamp, Option<Timestamp>, i64) = range;
    if since > until {
        return Err(Fault::invalid("--since", "must not be in the future"));
    }
    let events = replay_range(db, Range { since, until, after: -1, before: i64::MAX }).await?;
    Ok(Replayed { events, since, oldest, waiting })
}

/// Published events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    /// Time from which they were published.
    pub(crate) since: Timestamp,
    /// Time before which they were published. It excludes those that a replay has published again.
    pub(crate) until: Timestamp,
    /// Sequence in the stream that they come after; -1 includes those whose sequence is not known.
    pub(crate) after: i64,
    /// Sequence in the stream that they come before.
    pub(crate) before: i64,
}

/// Publishes the events in a range again, in the same order, and returns their number.
pub(crate) async fn replay_range(db: &PgPool, mut range: Range) -> Result<u64, Error> {
    let mut events = 0;
    loop {
        let (count, last) = replay_batch(db, range).await?;
        events += count.unsigned_abs();
        // Events with the same time as the last one may belong to the next batch.
        range.since = last.unwrap_or(range.since);
        // A batch is also smaller if some of its rows were just removed for their age.
        if count < BATCH && !is_left(db, range).await? {
            return Ok(events);
        }
    }
}

/// Marks a batch of events as unpublished.
async fn replay_batch(db: &PgPool, range: Range) -> Result<(i64, Option<Timestamp>), Error> {
    let done = sqlx::query_as(
        "with batch as (
             select id, published_at from outbox
             where published_at >= $1 and published_at < $2
               and coalesce(sequence, 0) > $3 and coalesce(sequence, 0) < $4
             order by published_at, id limit $5
             for update
         ), again as (
             update outbox set published_at = null from batch where outbox.id = batch.id
         )
         select count(*), max(published_at) from batch",
    );
    let Range { since, until, after, before } = range;
    let done = done.bind(since).bind(until).bind(after).bind(before).bind(BATCH);
    within(STATEMENT_TIMEOUT, done.fetch_one(db)).await
}

async fn is_left(db: &PgPool, Range { since, until, after, before }: Range) -> Result<bool, Error> {
    let left = sqlx::query_scalar(
        "select exists (
             select from outbox
             where published_at >= $1 and published_at < $2
               and coalesce(sequence, 0) > $3 and coalesce(sequence, 0) < $4)",
    );
    let left = left.bind(since).bind(until).bind(after).bind(before);
    within(STATEMENT_TIMEOUT, left.fetch_one(db)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_duration_ago_or_a_time() {
        for (text, seconds) in [("45s", 45), ("90m", 5400), ("2h", 7200), ("3d", 259_200)] {
            assert_eq!(text.parse(), Ok(Since::Ago(Duration::from_secs(seconds))));
        }
        assert!(matches!("2026-11-20T23:00:00+01:00".parse(), Ok(Since::Time(_))));
        for wrong in ["", "2", "h", "-2h", "2 h", "1.5h", "2y", "99999999999999999w", "5300w"] {
            assert!(wrong.parse::<Since>().unwrap_err().contains("such as"), "{wrong}");
        }
    }
}
