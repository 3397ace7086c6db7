//! The format of published events: CloudEvents 1.0 in structured mode.

use assay_proto::{CustomerId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::Stream;

/// Content type of messages with an event.
pub const CONTENT_TYPE: &str = "application/cloudevents+json";

/// The envelope of an event; see <https://github.com/cloudevents/spec>.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CloudEvent {
    pub(crate) specversion: String,
    pub(crate) id: Uuid,
    /// `/assay/<service>`
    pub(crate) source: String,
    /// `io.assay.<service>.<noun>.<action>.v1`
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// Id of the record.
    pub(crate) subject: String,
    pub(crate) time: Timestamp,
    pub(crate) datacontenttype: String,
    /// Id of the customer, an extension of Assay.
    pub(crate) tenantid: CustomerId,
    /// Trace of the event, the extension for distributed tracing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) traceparent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tracestate: Option<String>,
    pub(crate) data: Box<RawValue>,
}

impl CloudEvent {
    /// Creates the envelope of an event that the service of the stream publishes.
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

    /// Returns service, noun, action and version from the type of the event.
    pub(crate) fn words(&self) -> [&str; 4] {
        let mut words = self.kind.split('.').skip(2);
        [(); 4].map(|()| words.next().unwrap_or_default())
    }
}
