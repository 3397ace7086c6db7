//! Events that the world publishes.

use assay_events::{Event, publish, publish_all};
use assay_proto::CustomerId;

use super::{TEST_CASE_CREATED, World};

impl World {
    pub(crate) fn event(&self, number: i32) -> Event {
        Event::new(self.customer, number, TEST_CASE_CREATED, &number).unwrap()
    }

    /// Publishes the number for another customer.
    pub(crate) async fn publish_for(&self, customer: CustomerId, number: i32) {
        let event = Event::new(customer, number, TEST_CASE_CREATED, &number).unwrap();
        self.publish(&event).await;
    }

    pub(crate) async fn publish(&self, event: &Event) {
        let mut tx = assay_database::begin(&self.pool).await.unwrap();
        publish(&mut tx, event).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// Publishes numbers, each in a transaction of its own.
    pub(crate) async fn publish_each(&self, numbers: impl IntoIterator<Item = i32>) {
        for number in numbers {
            self.publish(&self.event(number)).await;
        }
    }

    /// Publishes numbers in one transaction.
    pub(crate) async fn publish_together(&self, numbers: impl IntoIterator<Item = i32>) {
        self.publish_all(numbers.into_iter().map(|number| self.event(number)).collect()).await;
    }

    /// Publishes changes of one record in one transaction.
    pub(crate) async fn publish_of_record(&self, numbers: impl IntoIterator<Item = i32>) {
        let event = |number| Event::new(self.customer, "TC-1", TEST_CASE_CREATED, &number).unwrap();
        self.publish_all(numbers.into_iter().map(event).collect()).await;
    }

    async fn publish_all(&self, events: Vec<Event>) {
        let mut tx = assay_database::begin(&self.pool).await.unwrap();
        publish_all(&mut tx, events.into_iter().map(Ok)).await.unwrap();
        tx.commit().await.unwrap();
    }
}
