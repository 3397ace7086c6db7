//! How an event looks on its way: CloudEvents 1.0 in structured mode.

use assay_proto::{CustomerId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::Stream;

/// The content type of a message that holds the whole event.
pub const CONTENT_TYPE: &str = "application/cloudevents+json";

/// The envelope of an event, as <https://github.com/cloudevents/spec> describes it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CloudEvent {
    pub(crate) specversion: String,
    pub(crate) id: Uuid,
    /// `/assay/<service>`
    pub(crate) source: String,
    /// `io.assay.<service>.<noun>.<action>.v1`
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// The id of the record.
    pub(crate) subject: String,
    pub(crate) time: Timestamp,
    pub(crate) datacontenttype: String,
    /// The customer; an extension of ours.
    pub(crate) tenantid: CustomerId,
    /// The trace that the event is part of; the extension for distributed tracing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) traceparent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tracestate: Option<String>,
    pub(crate) data: Box<RawValue>,
}

impl CloudEvent {
    /// That `[noun, action]` has happened to a record, as the service of the stream tells it.
    pub(crate) fn new(
        stream: Stream,
        id: Uuid,
        customer: CustomerId,
        record: String,
        [noun, action]: [&str; 2],
        time: Timestamp,
        data: Box<RawValue>,
    ) -> Self {
        let service = stream.service();
        Self {
            specversion: "1.0".to_owned(),
            id,
            source: format!("/assay/{service}"),
            kind: format!("io.assay.{service}.{noun}.{action}.v1"),
            subject: record,
            time,
            datacontenttype: "application/json".to_owned(),
            tenantid: customer,
            traceparent: None,
            tracestate: None,
            data,
        }
    }

    /// What the event's type says after `io.assay`: service, noun, action and version.
    pub(crate) fn words(&self) -> [&str; 4] {
        let mut words = self.kind.split('.').skip(2);
        [(); 4].map(|()| words.next().unwrap_or_default())
    }
}
