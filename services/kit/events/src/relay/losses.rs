//! Notices that NATS has lost events before all consumers had received them, and publishes them again.
//!
//! NATS loses acknowledged events if its store is wiped, restored from a copy, or not written before a
//! power failure, and if a limit or an operator removes them. Consumers cannot notice that: their
//! position is in the same store. So the relay keeps in the database how far all consumers of its
//! stream have come: a sequence, and a time before which all events up to that sequence were
//! published. It compares both with the stream every few seconds, between two batches, so that no
//! event is published but not marked meanwhile. Since only the active relay does so, and it holds a
//! lock, no loss is repaired twice.
//!
//! Events that were removed because of their age are reported too. The outbox has removed them as
//! well, so they cannot be published again.

mod position;

use std::{collections::BTreeSet, time::Duration};

use anyhow::anyhow;
use assay_proto::Timestamp;
use async_nats::jetstream::consumer::Info;
use futures::TryStreamExt as _;
use sqlx::{Error, PgPool};
use tokio::time::{Instant, timeout};

use self::position::{Loss, Position, StreamState};
use crate::{
    Nats, Stream,
    connection::RETRY_INTERVAL,
    nats::RESPONSE_TIMEOUT,
    replay::{Range, replay_range},
};

/// Interval of comparisons.
const INTERVAL: Duration = Duration::from_secs(5);

/// Interval of comparisons while they fail, for example because the NATS user has no permission.
const PAUSE: Duration = Duration::from_mins(1);

/// Interval of log lines about removed events.
const LOG_INTERVAL: Duration = Duration::from_hours(1);

/// Compares the stream with what its consumers have received.
pub(super) struct LossWatch<'a> {
    pool: &'a PgPool,
    nats: &'a Nats,
    stream: Stream,
    due: Instant,
    /// The last message of the stream at an earlier comparison, which some consumers had not received.
    awaited: Option<(i64, Timestamp)>,
    /// When removed events were found that are not replayed yet, and the first message after those
    /// that have been counted.
    removed: Option<(Instant, i64)>,
    logged: Option<Instant>,
    fails: bool,
}

impl<'a> LossWatch<'a> {
    pub(super) fn new(pool: &'a PgPool, nats: &'a Nats, stream: Stream) -> Self {
        count(stream, 0, 0);
        let (awaited, removed, logged, due) = (None, None, None, Instant::now());
        Self { pool, nats, stream, due, awaited, removed, logged, fails: false }
    }

    pub(super) fn is_due(&self) -> bool {
        Instant::now() >= self.due && self.nats.is_connected()
    }

    /// Makes the next comparison soon, because the stream does not accept events.
    pub(super) fn hurry(&mut self) {
        self.due = self.due.min(Instant::now() + RETRY_INTERVAL / 2);
    }

    /// Compares the stream with the position of its consumers, and replays what is missing. Fails
    /// only if the database does.
    pub(super) async fn check(&mut self) -> Result<(), Error> {
        self.due = Instant::now() + INTERVAL;
        // Read before the stream: what was published before this time is in the stream.
        let (now, position) = Position::load(self.pool, self.stream).await?;
        let state = timeout(RESPONSE_TIMEOUT, self.state()).await;
        let state = match state.unwrap_or_else(|_| Err(anyhow!("NATS does not respond"))) {
            Ok(state) => state,
            Err(error) => {
                self.pause(&error);
                return Ok(());
            }
        };
        self.fails = false;
        let mut position = match position {
            Some(position) => self.repair(position, &state, now).await?,
            None => Position::of_new(&state, now, self.nats.retention()),
        };
        position.advance(&state, now, self.nats.retention(), &mut self.awaited);
        position.save(self.pool, self.stream).await
    }

    /// Makes the next comparison later, since events are not published meanwhile.
    fn pause(&mut self, error: &anyhow::Error) {
        self.due = Instant::now() + PAUSE;
        if !std::mem::replace(&mut self.fails, true) {
            tracing::info!(
                stream = self.stream.name(),
                error = format!("{error:#}"),
                "cannot examine the stream for lost events; retrying"
            );
        }
    }

    /// Reads the state of the stream, and creates it if it is missing.
    async fn state(&self) -> anyhow::Result<StreamState> {
        let stream = self.nats.ensure_stream(self.stream).await?;
        let info = stream.get_info().await?;
        let consumers: Vec<Info> = stream.consumers().try_collect().await?;
        let last = i64::try_from(info.state.last_sequence)?;
        let received = |one: &Info| match (one.num_pending, one.num_ack_pending) {
            (0, 0) => last,
            _ => i64::try_from(one.ack_floor.stream_sequence).unwrap_or(last),
        };
        Ok(StreamState {
            created: info.created.to_rfc3339(),
            first: i64::try_from(info.state.first_sequence)?,
            last,
            received: consumers.iter().map(received).min().unwrap_or(last),
            consumers: consumers.into_iter().map(|one| one.name).collect::<BTreeSet<_>>(),
            duplicate_window: info.config.duplicate_window,
        })
    }

    /// Replays what the stream has lost. Returns the position in the stream as it is now.
    async fn repair(
        &mut self,
        position: Position,
        state: &StreamState,
        now: Timestamp,
    ) -> Result<Position, Error> {
        let published = position.last_published(self.pool).await?;
        match position.loss(state, published) {
            None => Ok(position),
            Some(Loss::Replaced) => {
                self.awaited = None;
                let events = self.replay(&position, now, -1, i64::MAX).await?;
                count(self.stream, events, events);
                tracing::warn!(
                    stream = self.stream.name(),
                    events,
                    "NATS has lost the stream; publishing again what consumers had not received"
                );
                let created = state.created.clone();
                Ok(Position { created, sequence: 0, received_until: now, ..position })
            }
            Some(Loss::Truncated) => {
                self.awaited = None;
                let events = self.replay(&position, now, state.last, i64::MAX).await?;
                count(self.stream, events, events);
                tracing::warn!(
                    stream = self.stream.name(),
                    events,
                    "NATS has lost the end of the stream; publishing it again"
                );
                Ok(Position { sequence: position.sequence.min(state.last), ..position })
            }
            Some(Loss::Removed) => self.repair_removed(position, state, now).await,
        }
    }

    /// Replays events that were removed from the stream, once their consumers have received what is
    /// left of it, and NATS does not drop the events as duplicates.
    async fn repair_removed(
        &mut self,
        position: Position,
        state: &StreamState,
        now: Timestamp,
    ) -> Result<Position, Error> {
        let (noticed, counted) = self.removed.unwrap_or((Instant::now(), position.sequence + 1));
        count(self.stream, state.first.saturating_sub(counted).max(0).unsigned_abs(), 0);
        self.removed = Some((noticed, state.first));
        if self.logged.is_none_or(|logged| logged.elapsed() > LOG_INTERVAL) {
            self.logged = Some(Instant::now());
            tracing::warn!(
                stream = self.stream.name(),
                events = state.first - position.sequence - 1,
                consumers = ?state.consumers,
                "events were removed from the stream before all consumers had received them"
            );
        }
        let is_awaited = state.received < state.first - 1;
        if is_awaited || noticed.elapsed() <= state.duplicate_window {
            return Ok(position);
        }
        let events = self.replay(&position, now, position.sequence, state.first).await?;
        count(self.stream, 0, events);
        tracing::warn!(stream = self.stream.name(), events, "publishing removed events again");
        self.removed = None;
        Ok(Position { sequence: state.first - 1, ..position })
    }

    async fn replay(
        &self,
        position: &Position,
        until: Timestamp,
        after: i64,
        before: i64,
    ) -> Result<u64, Error> {
        let since = position.received_until;
        replay_range(self.pool, Range { since, until, after, before }).await
    }
}

fn count(stream: Stream, lost: u64, replayed: u64) {
    metrics::counter!("assay_events_lost_total", "stream" => stream.name()).increment(lost);
    metrics::counter!("assay_events_replayed_total", "stream" => stream.name()).increment(replayed);
}
