//! Delivered messages are applied, or parked, and settled.

use assay_proto::CustomerId;
use sqlx::Error;

use super::{
    Consumer, Handler,
    aside::{self, Aside},
    dead_letter,
    delivery::Delivery,
    parked,
    received::Received,
    session::{Outcome, Session},
};
use crate::{
    Nats,
    connection::{PATIENCE, within},
    nats,
};

impl Consumer {
    /// Applies what was delivered, or parks it, customer by customer.
    pub(super) async fn apply(
        &self,
        nats: &Nats,
        session: &mut Session<'_, impl Handler>,
        aside: &Aside,
        deliveries: &[Delivery],
    ) -> Result<(), Error> {
        let mut customers: Vec<(CustomerId, Vec<_>)> = Vec::new();
        for delivery in deliveries {
            match &delivery.event {
                _ if delivery.is_not_for(self.name) => delivery.acknowledge().await,
                Err(error) => {
                    let reason = format!("this is no event: {error}");
                    self.give_up(nats, delivery, &reason).await;
                }
                Ok(event) => {
                    let place = customers.iter_mut().find(|(id, _)| *id == event.customer());
                    match place {
                        Some((_, events)) => events.push((delivery, event)),
                        None => customers.push((event.customer(), vec![(delivery, event)])),
                    }
                }
            }
        }
        for (customer, events) in customers {
            self.apply_customer(session, aside, customer, &events).await?;
        }
        Ok(())
    }

    /// Applies events of a customer. One that fails is parked; if something is in its way that may
    /// be in the way of others, so are those that follow.
    async fn apply_customer(
        &self,
        session: &mut Session<'_, impl Handler>,
        aside: &Aside,
        customer: CustomerId,
        events: &[(&Delivery, &Received)],
    ) -> Result<(), Error> {
        let mut rest = events;
        let mut divert = !aside.is_empty() && {
            let diverted = parked::are_diverted(&mut session.connection, self, customer);
            within(PATIENCE, diverted).await?
        };
        while !divert && !rest.is_empty() {
            let batch: Vec<_> = rest.iter().map(|(_, event)| *event).collect();
            let Outcome { applied, fault } = session.apply(&batch, !aside.is_empty()).await?;
            let (done, left) = rest.split_at(applied);
            acknowledge(done).await;
            rest = left;
            if let Some((failed, fault)) = rest.first().zip(fault) {
                aside::note(self, failed.1.id(), 1, &fault);
                divert = aside::is_passing(&fault);
                let delay = aside::delay(self, &fault, 1);
                let parked = parked::park(&mut session.connection, self, *failed, divert, delay);
                within(PATIENCE, parked).await?;
                aside.add();
                acknowledge(&rest[..1]).await;
                rest = &rest[1..];
            }
        }
        if !rest.is_empty() {
            let diverted = parked::divert(&mut session.connection, self, customer, rest);
            within(PATIENCE, diverted).await?;
            aside.add();
            acknowledge(rest).await;
        }
        Ok(())
    }

    async fn give_up(&self, nats: &Nats, delivery: &Delivery, reason: &str) {
        match dead_letter::keep(nats, self, delivery.into(), reason, 1).await {
            Ok(()) => delivery.terminate().await,
            Err(error) => {
                tracing::warn!(consumer = self.name, %error, "no dead letter; trying again");
                delivery.give_back(Some(nats::PATIENCE)).await;
            }
        }
    }
}

async fn acknowledge(events: &[(&Delivery, &Received)]) {
    for (delivery, _) in events {
        delivery.acknowledge().await;
    }
}
