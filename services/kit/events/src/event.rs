//! An event that a service publishes.

use std::{collections::HashMap, fmt::Display};

use assay_proto::{CustomerId, Fault, Timestamp, UserId};
use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::{
    EventType, Stream,
    cloud_event::{CloudEvent, Publisher},
    subject::token,
};

/// Maximum number of bytes of an event's data. NATS accepts messages of 1 MiB, envelope and headers
/// included; an event that it refuses would block all that follow.
const LARGEST: usize = 768 * 1024;

/// Size of an event without its data, in bytes.
const ROW: usize = 256;

/// An event that has not been published: something that has happened to a record of a customer.
#[derive(Clone, Debug)]
pub struct Event {
    pub(crate) id: Uuid,
    pub(crate) customer: CustomerId,
    pub(crate) record: String,
    pub(crate) noun: String,
    pub(crate) action: String,
    pub(crate) data: String,
    /// Id of the user, if a client has created it.
    pub(crate) client: Option<Uuid>,
    /// Trace headers, unless they are those of the current trace.
    pub(crate) trace: Option<HashMap<String, String>>,
}

impl Event {
    /// Creates an event about a record. It is published on the subject
    /// `assay.<service>.<customer>.<noun>.<action>`.
    pub fn new(
        customer: CustomerId,
        record: impl Display,
        event_type: EventType,
        data: &impl Serialize,
    ) -> Result<Self, Fault> {
        Self::untyped(customer, record, event_type.noun(), event_type.action(), data)
    }

    /// Creates an event without an [`EventType`]: its noun and action come from a client, such as
    /// those of a notification. Characters that could change the meaning of the subject are replaced
    /// in it.
    pub fn untyped(
        customer: CustomerId,
        record: impl Display,
        noun: &str,
        action: &str,
        data: &impl Serialize,
    ) -> Result<Self, Fault> {
        let data = serde_json::to_string(data).map_err(Fault::internal)?;
        if data.len() > LARGEST {
            return Err(Fault::internal(format!("an event of {} bytes is too large", data.len())));
        }
        let (noun, action) = (token(noun), token(action));
        let (id, record) = (Uuid::now_v7(), record.to_string());
        Ok(Self { id, customer, record, noun, action, data, client: None, trace: None })
    }

    /// Replaces the id of the event, for example by that of the notification that it carries.
    /// Consumers apply events with the same id once.
    #[must_use]
    pub fn with_id(self, id: Uuid) -> Self {
        Self { id, ..self }
    }

    /// Makes it an event of a client: it has the source `/assay/clients/<user>`, another type and another
    /// subject than those of Assay.
    #[must_use]
    pub fn of_client(self, user: UserId) -> Self {
        Self { client: Some(user.0), ..self }
    }

    /// Replaces the trace of the event, which is that of the transaction by default, for example by
    /// that of the event that has caused it.
    #[must_use]
    pub fn with_trace(self, trace: HashMap<String, String>) -> Self {
        Self { trace: Some(trace), ..self }
    }

    /// Returns the size of its row, in bytes.
    pub(crate) fn size(&self) -> usize {
        ROW + self.data.len()
    }

    pub fn id(&self) -> Uuid {
        self.id
    }

    /// Returns the event as JSON, as it is published on the stream if it happened at `time`.
    pub fn to_json(&self, stream: Stream, time: Timestamp) -> Result<Vec<u8>, Fault> {
        let data = RawValue::from_string(self.data.clone()).map_err(Fault::internal)?;
        let words = [self.noun.as_str(), &self.action];
        let record = self.record.clone();
        let publisher = Publisher { stream, client: self.client };
        let event = CloudEvent::new(publisher, self.id, self.customer, record, words, time, data);
        serde_json::to_vec(&event).map_err(Fault::internal)
    }
}

#[test]
fn an_event_that_nats_would_refuse_is_rejected() {
    let data = "x".repeat(LARGEST);
    assert!(Event::new(CustomerId::new(), "1", EventType::SecretsSeen, &data).is_err());
}
