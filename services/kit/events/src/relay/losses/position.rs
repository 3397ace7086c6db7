//! The messages that all consumers of a stream have received, compared with the stream.

use std::{collections::BTreeSet, time::Duration};

use assay_proto::Timestamp;
use sqlx::{Error, PgPool};

use crate::{
    Stream,
    connection::{STATEMENT_TIMEOUT, within},
};

/// Maximum number of events in a batch of the relay, which are marked at the same time.
const BATCH: i64 = super::super::BATCH;

/// A stream and its consumers, as NATS reports them.
#[derive(Clone, Debug)]
pub(super) struct StreamState {
    pub(super) created: String,
    /// Sequence of the first message, or after the last one if there is none.
    pub(super) first: i64,
    pub(super) last: i64,
    /// Sequence up to which all consumers have received the messages.
    pub(super) received: i64,
    pub(super) consumers: BTreeSet<String>,
    pub(super) duplicate_window: Duration,
}

/// How far all consumers of a stream have come.
#[derive(Clone, Debug, sqlx::FromRow)]
pub(super) struct Position {
    /// Creation time of the stream, which identifies it.
    pub(super) created: String,
    pub(super) consumers: Vec<String>,
    /// All consumers have received the messages up to this one…
    pub(super) sequence: i64,
    /// …among them all events that were published before this time.
    pub(super) received_until: Timestamp,
}

/// A way in which a stream lacks events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// The stream is another one.
    Replaced,
    /// The last events are missing, as in an older copy of the store.
    Truncated,
    /// Events were removed that some consumer had not received.
    Removed,
}

impl Position {
    /// Returns the position in a stream that was not examined before.
    pub(super) fn of_new(state: &StreamState, now: Timestamp, retention: Duration) -> Self {
        Self {
            created: state.created.clone(),
            consumers: Vec::new(),
            sequence: state.first - 1,
            received_until: Timestamp(now.0 - retention),
        }
    }

    /// Returns the loss of a stream in which an event was published with the sequence `published`.
    pub(super) fn loss(&self, state: &StreamState, published: Option<i64>) -> Option<Loss> {
        if self.created != state.created {
            Some(Loss::Replaced)
        } else if published.is_some_and(|published| published > state.last) {
            Some(Loss::Truncated)
        } else if state.first > self.sequence + 1 {
            Some(Loss::Removed)
        } else {
            None
        }
    }

    /// Moves the position forward if all consumers have received more. `awaited` is the last message
    /// of an earlier comparison, with its time.
    ///
    /// A consumer that is missing may not be back yet after a loss of the stream, so the position stays
    /// until it is, or until the events have expired.
    pub(super) fn advance(
        &mut self,
        state: &StreamState,
        now: Timestamp,
        retention: Duration,
        awaited: &mut Option<(i64, Timestamp)>,
    ) {
        let is_recent = self.received_until.0 > now.0 - retention;
        let is_missing = self.consumers.iter().any(|name| !state.consumers.contains(name));
        if is_missing && is_recent {
            return;
        }
        self.consumers = state.consumers.iter().cloned().collect();
        if state.first > self.sequence + 1 {
            return;
        }
        let target = awaited.get_or_insert((state.last, now));
        if state.received >= state.last {
            *target = (state.last, now);
        }
        if state.received >= target.0 {
            (self.sequence, self.received_until) = (self.sequence.max(target.0), target.1);
            *awaited = None;
        }
    }

    /// Returns the time of the database, and the stored position.
    pub(super) async fn load(
        db: &PgPool,
        stream: Stream,
    ) -> Result<(Timestamp, Option<Self>), Error> {
        let now = sqlx::query_scalar("select now()").fetch_one(db);
        let now = within(STATEMENT_TIMEOUT, now).await?;
        let stored = sqlx::query_as(
            "select created, consumers, sequence, received_until from outbox_stream where name = $1",
        );
        let stored = stored.bind(stream.name()).fetch_optional(db);
        Ok((now, within(STATEMENT_TIMEOUT, stored).await?))
    }

    pub(super) async fn save(&self, db: &PgPool, stream: Stream) -> Result<(), Error> {
        let save = sqlx::query(
            "insert into outbox_stream (name, created, consumers, sequence, received_until)
             values ($1, $2, $3, $4, $5)
             on conflict (name) do update
             set created = $2, consumers = $3, sequence = $4, received_until = $5",
        );
        let save = save.bind(stream.name()).bind(&self.created).bind(&self.consumers);
        let save = save.bind(self.sequence).bind(self.received_until).execute(db);
        within(STATEMENT_TIMEOUT, save).await.map(drop)
    }

    /// Returns the sequence of the last event that was published in this stream after the position.
    pub(super) async fn last_published(&self, db: &PgPool) -> Result<Option<i64>, Error> {
        let last = sqlx::query_scalar(
            "select max(sequence) from (
                 select sequence from outbox where published_at >= $1
                 order by published_at desc limit $2
             ) as latest",
        );
        let last = last.bind(self.received_until).bind(BATCH).fetch_one(db);
        within(STATEMENT_TIMEOUT, last).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RETENTION: Duration = Duration::from_hours(24 * 7);

    fn at(seconds: u64) -> Timestamp {
        Timestamp(Timestamp::default().0 + Duration::from_secs(seconds))
    }

    fn state(first: i64, last: i64, received: i64) -> StreamState {
        let consumers = BTreeSet::from(["catalog".to_owned()]);
        let (created, duplicate_window) = ("monday".to_owned(), Duration::ZERO);
        StreamState { created, first, last, received, consumers, duplicate_window }
    }

    fn position(sequence: i64) -> Position {
        let consumers = vec!["catalog".to_owned()];
        Position { created: "monday".to_owned(), consumers, sequence, received_until: at(0) }
    }

    #[test]
    fn a_stream_that_lacks_events_is_noticed() {
        let later = StreamState { created: "tuesday".to_owned(), ..state(1, 9, 9) };
        for (state, published, expected) in [
            (state(1, 9, 5), Some(9), None),
            (state(1, 9, 5), None, None),
            (state(6, 9, 5), Some(9), None),
            (state(7, 9, 5), Some(9), Some(Loss::Removed)),
            (state(10, 9, 9), Some(9), Some(Loss::Removed)),
            (state(1, 8, 5), Some(9), Some(Loss::Truncated)),
            (later, Some(9), Some(Loss::Replaced)),
        ] {
            assert_eq!(position(5).loss(&state, published), expected, "{state:?}");
        }
    }

    #[test]
    fn the_position_follows_the_slowest_consumer() {
        let (mut position, mut awaited) = (position(5), None);
        let mut advance = |state: &StreamState, seconds| {
            position.advance(state, at(seconds), RETENTION, &mut awaited);
            (position.sequence, position.received_until)
        };
        assert_eq!(advance(&state(1, 9, 6), 1), (5, at(0)));
        // The consumer never has all events of a busy stream.
        assert_eq!(advance(&state(1, 19, 8), 2), (5, at(0)));
        assert_eq!(advance(&state(1, 29, 12), 3), (9, at(1)));
        assert_eq!(advance(&state(1, 39, 39), 4), (39, at(4)));
        // A new consumer begins at the first message.
        assert_eq!(advance(&state(1, 39, 0), 5), (39, at(4)));
    }

    #[test]
    fn the_position_waits_for_a_consumer_that_is_missing() {
        let (mut position, mut awaited) = (position(5), None);
        let none = StreamState { consumers: BTreeSet::new(), ..state(1, 9, 9) };
        position.advance(&none, at(60), RETENTION, &mut awaited);
        assert_eq!((position.sequence, position.received_until), (5, at(0)));
        position.advance(&none, at(8 * 24 * 3600), RETENTION, &mut awaited);
        assert_eq!(position.sequence, 9);
        assert!(position.consumers.is_empty());
    }
}
