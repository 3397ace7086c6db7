//! The definition of a consumer, and the trait of what applies its events.

use std::{future::ready, sync::Arc, time::Duration};

use assay_proto::Fault;
use assay_records::Action;
use sqlx::PgTransaction;
use tokio::sync::Notify;

use super::received::Received;
use crate::Stream;

/// Time after which an event that stays blocked becomes a dead letter.
const GIVE_UP_AFTER: Duration = Duration::from_mins(15);

/// Applies the events of another service.
pub trait Handler: Send + Sync + 'static {
    /// Applies an event. The transaction also marks the event as applied, and may apply several
    /// events.
    ///
    /// A handler selects events by their type. All others are applied by doing nothing, also those
    /// of types that a later release publishes. An event that fails is parked and retried after
    /// others, so handlers must compare revisions instead of relying on the order of events. It
    /// becomes a dead letter after five attempts, or if it is blocked ([`Fault::Unavailable`], such
    /// as a lock that is not released) after 15 minutes. An event that takes longer than a second is
    /// parked too, and gets 20 seconds on a retry.
    fn handle(
        &self,
        tx: &mut PgTransaction<'_>,
        event: &Received,
    ) -> impl Future<Output = Result<(), Fault>> + Send;

    /// Applies several events of one customer in their order, with few statements. Returns false if
    /// [`Handler::handle`] has to apply them one by one, as it does by default, and then has no
    /// effect.
    ///
    /// A failure does not show which of the events has failed, so they are applied one by one too.
    fn handle_all(
        &self,
        _tx: &mut PgTransaction<'_>,
        _events: &[&Received],
    ) -> impl Future<Output = Result<bool, Fault>> + Send {
        ready(Ok(false))
    }
}

/// A durable consumer of a stream.
///
/// One replica of a service consumes; the others stand by. So the events of a record are applied in
/// order, as long as none fails.
#[derive(Clone, Debug)]
pub struct Consumer {
    pub(super) name: &'static str,
    pub(super) stream: Stream,
    pub(super) filter: String,
    pub(super) first_delay: Duration,
    pub(super) give_up_after: Duration,
    /// Notified when the consumer is created in JetStream.
    pub(super) created: Arc<Notify>,
}

impl Consumer {
    /// Creates a consumer of all events of a stream. JetStream and the inbox identify it by its
    /// name, usually that of the consuming service.
    pub fn new(name: &'static str, stream: Stream) -> Self {
        let (filter, first_delay) = (stream.subjects(), Duration::from_secs(1));
        let (give_up_after, created) = (GIVE_UP_AFTER, Arc::default());
        Self { name, stream, filter, first_delay, give_up_after, created }
    }

    /// Restricts the consumer to one kind of record, such as `test_case`.
    #[must_use]
    pub fn only(self, noun: &str) -> Self {
        Self { filter: format!("assay.{}.*.{noun}.*", self.stream.service()), ..self }
    }

    /// Restricts the consumer to one action on records of all kinds, such as their deletion.
    #[must_use]
    pub fn only_action(self, action: Action) -> Self {
        let action = action.name().to_ascii_lowercase();
        Self { filter: format!("assay.{}.*.*.{action}", self.stream.service()), ..self }
    }

    /// Notifies when JetStream has no position of the consumer: at the first start, and after a loss of the
    /// stream, whose events may be lost, too.
    #[must_use]
    pub fn notify_of_loss(self, created: Arc<Notify>) -> Self {
        Self { created, ..self }
    }

    /// Sets the backoff before the first retry of a failed event, one second by default. It is
    /// multiplied by four with every retry, and doubled twice at most for a blocked event.
    #[must_use]
    pub fn retry_after(self, first_delay: Duration) -> Self {
        Self { first_delay, ..self }
    }

    /// Sets the time after which an event that stays blocked, for example by a lock, becomes a dead
    /// letter, 15 minutes by default.
    #[must_use]
    pub fn give_up_after(self, give_up_after: Duration) -> Self {
        Self { give_up_after, ..self }
    }
}
