//! Publishes again what a broker has lost.

use std::{str::FromStr, time::Duration};

use assay_proto::{Fault, Timestamp};
use serde::{Deserialize as _, de::IntoDeserializer as _};
use sqlx::PgPool;

use crate::connection::within;

/// How many events are handed to the relay at once: few enough that it can publish the first while
/// the last are still looked for, and that nobody waits for a lock.
const PORTION: i64 = 1000;

/// How long one portion may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// The longest time ago, in seconds; whoever asks for more is mistaken.
const LONGEST: u64 = 100 * 366 * 24 * 3600;

/// A moment in the past: so long ago, or a time.
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

/// Reads a whole number of seconds, minutes, hours, days or weeks, such as `90m`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let seconds = [("s", 1), ("m", 60), ("h", 3600), ("d", 24 * 3600), ("w", 7 * 24 * 3600)];
    let read = seconds.into_iter().find_map(|(unit, seconds)| {
        let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
        number.checked_mul(seconds).filter(|total| *total <= LONGEST)
    });
    read.map(Duration::from_secs).ok_or_else(|| "expected a duration such as 30s or 2h".to_owned())
}

/// What was published again.
#[derive(Clone, Copy, Debug)]
pub struct Replayed {
    pub events: u64,
    pub since: Timestamp,
    /// When the oldest event was published that was still there.
    pub oldest: Option<Timestamp>,
    /// How many waited to be published anyway.
    pub waiting: i64,
}

/// Has everything published again that was published since then, in the order in which it was, for
/// when the broker has lost it. Consumers know what they have applied already.
///
/// The relay begins while we are at it. If this fails in the middle, it can be done again.
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
    let range = within(PATIENCE, range.bind(ago).bind(time).fetch_one(db)).await?;
    let (since, until, oldest, waiting): (Timestamp, Timestamp, Option<Timestamp>, i64) = range;
    if since > until {
        return Err(Fault::invalid("--since", "lies in the future"));
    }
    let (mut events, mut from) = (0, since);
    loop {
        let (count, last) = portion(db, from, until).await?;
        events += count.unsigned_abs();
        // Those published at the same time as the last may be in two portions.
        from = last.unwrap_or(from);
        // A portion is smaller, too, if some of it was removed in this moment for its age.
        if count < PORTION && !is_left(db, from, until).await? {
            return Ok(Replayed { events, since, oldest, waiting });
        }
    }
}

/// What was published before `until`, and so not by this replay.
async fn portion(
    db: &PgPool,
    from: Timestamp,
    until: Timestamp,
) -> Result<(i64, Option<Timestamp>), Fault> {
    let done = sqlx::query_as(
        "with portion as (
             select id, published_at from outbox
             where published_at >= $1 and published_at < $2
             order by published_at, id limit $3
             for update
         ), again as (
             update outbox set published_at = null from portion where outbox.id = portion.id
         )
         select count(*), max(published_at) from portion",
    );
    Ok(within(PATIENCE, done.bind(from).bind(until).bind(PORTION).fetch_one(db)).await?)
}

async fn is_left(db: &PgPool, from: Timestamp, until: Timestamp) -> Result<bool, Fault> {
    let left = "select exists (
         select from outbox where published_at >= $1 and published_at < $2)";
    let left = sqlx::query_scalar(left).bind(from).bind(until);
    Ok(within(PATIENCE, left.fetch_one(db)).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_so_long_ago_or_a_time() {
        for (text, seconds) in [("45s", 45), ("90m", 5400), ("2h", 7200), ("3d", 259_200)] {
            assert_eq!(text.parse(), Ok(Since::Ago(Duration::from_secs(seconds))));
        }
        assert!(matches!("2026-11-20T23:00:00+01:00".parse(), Ok(Since::Time(_))));
        for wrong in ["", "2", "h", "-2h", "2 h", "1.5h", "2y", "99999999999999999w", "5300w"] {
            assert!(wrong.parse::<Since>().unwrap_err().contains("such as"), "{wrong}");
        }
    }
}
