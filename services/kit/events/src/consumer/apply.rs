//! Applies or parks delivered messages, and acknowledges them.

use assay_proto::CustomerId;
use sqlx::Error;

use super::{
    dead_letter,
    definition::{Consumer, Handler},
    delivery::Delivery,
    parked,
    received::Received,
    retry::{self, ParkedSignal},
    session::{Outcome, Session},
};
use crate::{
    Nats,
    connection::{STATEMENT_TIMEOUT, within},
    nats,
};

impl Consumer {
    /// Applies or parks deliveries, customer by customer.
    pub(super) async fn apply(
        &self,
        nats: &Nats,
        session: &mut Session<'_, impl Handler>,
        signal: &ParkedSignal,
        deliveries: &[Delivery],
    ) -> Result<(), Error> {
        let mut customers: Vec<(CustomerId, Vec<_>)> = Vec::new();
        for delivery in deliveries {
            match &delivery.event {
                _ if delivery.is_not_for(self.name) => delivery.acknowledge().await,
                Err(error) => {
                    let reason = format!("not a valid event: {error}");
                    self.give_up(nats, delivery, &reason).await;
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
        for (customer, events) in customers {
            self.apply_customer(session, signal, customer, &events).await?;
        }
        Ok(())
    }

    /// Applies events of one customer. An event that fails is parked; if it is blocked, later
    /// events may be blocked too and are parked with it.
    async fn apply_customer(
        &self,
        session: &mut Session<'_, impl Handler>,
        signal: &ParkedSignal,
        customer: CustomerId,
        events: &[(&Delivery, &Received)],
    ) -> Result<(), Error> {
        let mut rest = events;
        let mut divert = !signal.is_empty() && {
            let diverted = parked::are_diverted(&mut session.connection, self, customer);
            within(STATEMENT_TIMEOUT, diverted).await?
        };
        while !divert && !rest.is_empty() {
            let batch: Vec<_> = rest.iter().map(|(_, event)| *event).collect();
            let Outcome { applied, fault } = session.apply(&batch, !signal.is_empty()).await?;
            let (done, left) = rest.split_at(applied);
            acknowledge(done).await;
            rest = left;
            if let Some((failed, fault)) = rest.first().zip(fault) {
                retry::record_failure(self, failed.1.id(), 1, &fault);
                divert = retry::is_blocked(&fault);
                let delay = retry::backoff(self, &fault, 1);
                let parked = parked::park(&mut session.connection, self, *failed, divert, delay);
                within(STATEMENT_TIMEOUT, parked).await?;
                signal.add();
                acknowledge(&rest[..1]).await;
                rest = &rest[1..];
            }
        }
        if !rest.is_empty() {
            let diverted = parked::divert(&mut session.connection, self, customer, rest);
            within(STATEMENT_TIMEOUT, diverted).await?;
            signal.add();
            acknowledge(rest).await;
        }
        Ok(())
    }

    async fn give_up(&self, nats: &Nats, delivery: &Delivery, reason: &str) {
        match dead_letter::keep(nats, self, delivery.into(), reason, 1).await {
            Ok(()) => delivery.terminate().await,
            Err(error) => {
                tracing::warn!(consumer = self.name, %error, "cannot store a dead letter; retrying");
                delivery.reject(Some(nats::RESPONSE_TIMEOUT)).await;
            }
        }
    }
}

async fn acknowledge(events: &[(&Delivery, &Received)]) {
    for (delivery, _) in events {
        delivery.acknowledge().await;
    }
}
