//! The format of published events: CloudEvents 1.0 in structured mode.

use assay_proto::{CustomerId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::{Stream, Subject};

/// Content type of messages with an event.
pub const CONTENT_TYPE: &str = "application/cloudevents+json";

/// The publisher of an event. Its source, its type and its subject follow from it, so that no event of a client
/// looks like one of Assay.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Publisher {
    pub(crate) stream: Stream,
    /// Id of the user, if a client has created the event.
    pub(crate) client: Option<Uuid>,
}

impl Publisher {
    fn source(self) -> String {
        match self.client {
            Some(user) => format!("/assay/clients/{user}"),
            None => format!("/assay/{}", self.stream.service()),
        }
    }

    fn kind(self, [noun, action]: [&str; 2]) -> String {
        match self.client {
            Some(_) => format!("io.assay.client.{noun}.{action}.v1"),
            None => format!("io.assay.{}.{noun}.{action}.v1", self.stream.service()),
        }
    }

    /// Returns the subject of the message on NATS.
    pub(crate) fn subject(self, customer: CustomerId, [noun, action]: [&str; 2]) -> String {
        let service = self.stream.service();
        let of_client = self.client.is_some();
        Subject { service, customer, of_client, noun, action }.to_string()
    }
}

/// The envelope of an event; see <https://github.com/cloudevents/spec>.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CloudEvent {
    pub(crate) specversion: String,
    pub(crate) id: Uuid,
    /// `/assay/<service>`, or `/assay/clients/<user>`
    pub(crate) source: String,
    /// `io.assay.<service>.<noun>.<action>.v1`, with the service `client` for those of clients
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
    /// Creates the envelope of an event.
    pub(crate) fn new(
        publisher: Publisher,
        id: Uuid,
        customer: CustomerId,
        record: String,
        words: [&str; 2],
        time: Timestamp,
        data: Box<RawValue>,
    ) -> Self {
        Self {
            specversion: "1.0".to_owned(),
            id,
            source: publisher.source(),
            kind: publisher.kind(words),
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
