//! Applies or parks delivered messages, and acknowledges them.

use std::collections::VecDeque;

use assay_proto::CustomerId;
use assay_work::MOST_TAKEN;
use sqlx::Error;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::{
    definition::{Consumer, Handler},
    delivery::Delivery,
    parked,
    received::Received,
    retry::{self, ParkedSignal},
    session::{Outcome, Session},
};
use crate::connection::{STATEMENT_TIMEOUT, within};

/// Events that are not applied yet.
type Events<'a> = &'a [(&'a Delivery, &'a Received)];

/// A customer with its events, in their order.
type OfCustomer<'a> = (CustomerId, Vec<(&'a Delivery, &'a Received)>);

/// The next turn of a customer.
struct Turn<'a> {
    customer: CustomerId,
    events: Events<'a>,
    /// When it may begin.
    from: Instant,
}

impl Consumer {
    /// Applies or parks deliveries, until `stop` is cancelled. Customers take turns, of a transaction
    /// each, so that none waits until a large change of another is applied.
    pub(super) async fn apply(
        &self,
        session: &mut Session<'_, impl Handler>,
        signal: &ParkedSignal,
        deliveries: &[Delivery],
        stop: &CancellationToken,
    ) -> Result<(), Error> {
        let customers = self.by_customer(session, deliveries).await?;
        let from = Instant::now();
        let turns = customers.iter().map(|(customer, events)| (*customer, &events[..]));
        let mut turns: VecDeque<_> =
            turns.map(|(customer, events)| Turn { customer, events, from }).collect();
        while let Some(mut turn) = turns.pop_front() {
            if stop.run_until_cancelled(sleep_until(turn.from)).await.is_none() {
                break;
            }
            self.take(&mut turn, session, signal).await?;
            if !turn.events.is_empty() {
                turns.push_back(turn);
            }
        }
        Ok(())
    }

    /// Returns the events of each customer, in their order.
    async fn by_customer<'a>(
        &self,
        session: &mut Session<'_, impl Handler>,
        deliveries: &'a [Delivery],
    ) -> Result<Vec<OfCustomer<'a>>, Error> {
        let mut customers: Vec<OfCustomer<'a>> = Vec::new();
        for delivery in deliveries {
            match &delivery.event {
                Err(error) => {
                    let reason = format!("{}: {error}", retry::INVALID);
                    let connection = &mut session.connection;
                    let kept = parked::keep_invalid(connection, self, delivery, &reason);
                    within(STATEMENT_TIMEOUT, kept).await?;
                    delivery.terminate().await;
                }
                Ok(event) => {
                    let group = customers.iter_mut().find(|(id, _)| *id == event.customer());
                    match group {
                        Some((_, events)) => events.push((delivery, event)),
                        None => customers.push((event.customer(), vec![(delivery, event)])),
                    }
                }
            }
        }
        Ok(customers)
    }

    /// Applies the first events of a customer. An event that fails is parked; if it is blocked, later
    /// events may be blocked too and are parked with it. So are those that were delivered many times,
    /// because parked events are counted before they are applied.
    async fn take(
        &self,
        turn: &mut Turn<'_>,
        session: &mut Session<'_, impl Handler>,
        signal: &ParkedSignal,
    ) -> Result<(), Error> {
        let is_suspect = turn.events.iter().any(|(one, _)| one.delivered > MOST_TAKEN.into());
        let mut divert = is_suspect
            || !signal.is_empty() && {
                let diverted = parked::are_diverted(&mut session.connection, self, turn.customer);
                within(STATEMENT_TIMEOUT, diverted).await?
            };
        if !divert {
            let events: Vec<_> = turn.events.iter().map(|(_, event)| *event).collect();
            let Outcome { applied, fault, pause } =
                session.apply(&events, !signal.is_empty()).await?;
            turn.settle(applied).await;
            turn.from = Instant::now() + pause;
            if let Some((failed, fault)) = turn.events.first().zip(fault) {
                retry::record_failure(self, failed.1.id(), 1, &fault);
                divert = retry::is_blocked(&fault);
                let delay = retry::backoff(self, &fault, 1);
                let parked = parked::park(&mut session.connection, self, *failed, divert, delay);
                within(STATEMENT_TIMEOUT, parked).await?;
                signal.add();
                turn.settle(1).await;
            }
        }
        if divert && !turn.events.is_empty() {
            let connection = &mut session.connection;
            let diverted = parked::divert(connection, self, turn.customer, turn.events);
            within(STATEMENT_TIMEOUT, diverted).await?;
            signal.add();
            turn.settle(turn.events.len()).await;
        }
        Ok(())
    }
}

impl Turn<'_> {
    /// Acknowledges so many events, which are applied or parked.
    async fn settle(&mut self, count: usize) {
        let (settled, rest) = self.events.split_at(count);
        for (delivery, _) in settled {
            delivery.acknowledge().await;
        }
        self.events = rest;
    }
}
