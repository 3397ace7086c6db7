//! One attempt to apply events in a transaction.

use std::{collections::HashSet, time::Duration};

use assay_proto::Fault;
use sqlx::PgTransaction;
use tokio::time::timeout;
use tracing::Instrument as _;
use uuid::Uuid;

use super::{definition::Handler, received::Received};

/// Time limits of applying an event, or several at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// For all statements.
    pub(super) event: Duration,
    /// For one statement, in the format of PostgreSQL.
    pub(super) statement: &'static str,
    /// For the wait for a lock, in the format of PostgreSQL.
    pub(super) lock: &'static str,
}

/// An attempt to apply events of one customer.
pub(super) struct Attempt<'a> {
    pub(super) events: &'a [&'a Received],
    /// Whether the handler may apply several events at once.
    pub(super) is_gathered: bool,
    /// Number of events before the one that is being applied, or `None` if several are.
    pub(super) at: Option<usize>,
}

impl Attempt<'_> {
    /// Applies those of the events that are `fresh`.
    pub(super) async fn handle(
        &mut self,
        handler: &impl Handler,
        tx: &mut PgTransaction<'_>,
        mut fresh: HashSet<Uuid>,
        limits: Limits,
        consumer: &'static str,
    ) -> Result<(), Fault> {
        let fresh: Vec<_> = self
            .events
            .iter()
            .enumerate()
            .filter(|(_, event)| fresh.remove(&event.id()))
            .map(|(index, event)| (index, *event))
            .collect();
        if self.is_gathered && fresh.len() > 1 {
            self.at = None;
            let events: Vec<_> = fresh.iter().map(|(_, event)| *event).collect();
            if limited(limits, handler.handle_all(tx, &events)).await? {
                return Ok(());
            }
        }
        for (index, event) in fresh {
            self.at = Some(index);
            let span = tracing::info_span!(
                parent: None,
                "apply event",
                otel.kind = "consumer",
                messaging.system = "nats",
                messaging.operation.type = "process",
                messaging.message.id = %event.id(),
                consumer,
            );
            assay_runtime::trace::follow_map(&span, &event.trace());
            limited(limits, handler.handle(tx, event).instrument(span)).await?;
        }
        Ok(())
    }
}

async fn limited<T>(
    limits: Limits,
    handled: impl Future<Output = Result<T, Fault>>,
) -> Result<T, Fault> {
    let handled = timeout(limits.event, handled).await;
    handled.unwrap_or(Err(Fault::Unavailable("the database")))
}
