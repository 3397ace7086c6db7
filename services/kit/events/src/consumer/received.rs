//! An event that came.

use assay_proto::{CustomerId, Fault, Timestamp};
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::cloud_event::CloudEvent;

/// An event that another service has published.
#[derive(Debug)]
pub struct Received(CloudEvent);

impl Received {
    pub(crate) fn read(payload: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(payload).map(Self)
    }

    pub fn id(&self) -> Uuid {
        self.0.id
    }

    /// The customer that the record belongs to.
    pub fn customer(&self) -> CustomerId {
        self.0.tenantid
    }

    /// The id of the record.
    pub fn record(&self) -> &str {
        &self.0.subject
    }

    /// The service that has published the event, such as `catalog`.
    pub fn service(&self) -> &str {
        self.0.words()[0]
    }

    /// The kind of the record, such as `test_case`.
    pub fn noun(&self) -> &str {
        self.0.words()[1]
    }

    /// What has happened to it, such as `created`.
    pub fn action(&self) -> &str {
        self.0.words()[2]
    }

    /// When it happened: the time of the transaction.
    pub fn time(&self) -> Timestamp {
        self.0.time
    }

    /// What was published with the event.
    pub fn data<T: DeserializeOwned>(&self) -> Result<T, Fault> {
        serde_json::from_str(self.0.data.get()).map_err(Fault::internal)
    }

    /// The trace that the event is part of, if any.
    pub(super) fn trace(&self) -> std::collections::HashMap<String, String> {
        let fields = [("traceparent", &self.0.traceparent), ("tracestate", &self.0.tracestate)];
        fields.into_iter().filter_map(|(k, v)| Some((k.to_owned(), v.clone()?))).collect()
    }
}
