//! An event that was delivered.

use std::collections::HashMap;

use assay_proto::{CustomerId, Fault, Timestamp};
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::{EventType, cloud_event::CloudEvent};

/// An event from another service.
#[derive(Debug)]
pub struct Received(CloudEvent);

impl Received {
    pub(crate) fn read(payload: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(payload).map(Self)
    }

    pub fn id(&self) -> Uuid {
        self.0.id
    }

    /// Returns the customer that the record belongs to.
    pub fn customer(&self) -> CustomerId {
        self.0.tenantid
    }

    /// Returns the size of the data, in bytes.
    pub(crate) fn size(&self) -> usize {
        self.0.data.get().len()
    }

    /// Returns the id of the record.
    pub fn record(&self) -> &str {
        &self.0.subject
    }

    /// Returns the type of the event; `None` if this release does not know it.
    pub fn event_type(&self) -> Option<EventType> {
        let [service, noun, action, _] = self.0.words();
        EventType::parse(service, noun, action)
    }

    /// Returns the time of the transaction that published the event.
    pub fn time(&self) -> Timestamp {
        self.0.time
    }

    /// Deserializes the message that the event carries; see [`EventType::message`].
    pub fn data<T: DeserializeOwned>(&self) -> Result<T, Fault> {
        serde_json::from_str(self.0.data.get()).map_err(Fault::internal)
    }

    /// Returns the trace headers of the event; see [`Event::with_trace`](crate::Event::with_trace).
    pub fn trace(&self) -> HashMap<String, String> {
        let fields = [("traceparent", &self.0.traceparent), ("tracestate", &self.0.tracestate)];
        fields.into_iter().filter_map(|(k, v)| Some((k.to_owned(), v.clone()?))).collect()
    }
}
