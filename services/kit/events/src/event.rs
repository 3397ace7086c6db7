//! What a service tells others.

use std::fmt::Display;

use assay_proto::{CustomerId, Fault, Timestamp};
use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::{Stream, cloud_event::CloudEvent};

/// The most bytes an event may carry. NATS takes messages of 1 MiB, envelope and headers included;
/// one that it refused would hold up all that come after it.
const LARGEST: usize = 768 * 1024;

/// The most characters of a subject's token.
const LONGEST_TOKEN: usize = 64;

/// Something that has happened to a record of a customer, not told yet.
#[derive(Clone, Debug)]
pub struct Event {
    pub(crate) id: Uuid,
    pub(crate) customer: CustomerId,
    pub(crate) record: String,
    pub(crate) noun: String,
    pub(crate) action: String,
    pub(crate) data: String,
}

impl Event {
    /// That `action`, a past participle, has happened to a record. The message travels on the
    /// subject `assay.<service>.<customer>.<noun>.<action>`, in lower case; whatever could change
    /// the meaning of a subject is replaced, so that noun and action may come from a client.
    pub fn new(
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
        Ok(Self { id: Uuid::now_v7(), customer, record: record.to_string(), noun, action, data })
    }

    /// Gives the event an id from elsewhere, such as that of the notification it is. Events with
    /// the same id are the same event.
    #[must_use]
    pub fn with_id(self, id: Uuid) -> Self {
        Self { id, ..self }
    }

    pub fn id(&self) -> Uuid {
        self.id
    }

    /// The event as it travels, in JSON, if it happened at `time` and is told on that stream.
    pub fn to_json(&self, stream: Stream, time: Timestamp) -> Result<Vec<u8>, Fault> {
        let data = RawValue::from_string(self.data.clone()).map_err(Fault::internal)?;
        let words = [self.noun.as_str(), &self.action];
        let record = self.record.clone();
        let event = CloudEvent::new(stream, self.id, self.customer, record, words, time, data);
        serde_json::to_vec(&event).map_err(Fault::internal)
    }
}

/// Makes text one token of a subject.
pub(crate) fn token(text: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let token: String = text.chars().take(LONGEST_TOKEN).map(safe).collect();
    if token.is_empty() { "_".to_owned() } else { token.to_ascii_lowercase() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_cannot_leave_its_place_in_the_subject() {
        let long = "x".repeat(500);
        for (text, expected) in [
            ("TestCase", "testcase"),
            ("test_case", "test_case"),
            ("a.b.>", "a_b__"),
            ("* \r\nPUB", "____pub"),
            ("prüfung", "pr_fung"),
            ("", "_"),
            (&long, &long[..LONGEST_TOKEN]),
        ] {
            assert_eq!(token(text), expected);
        }
    }

    #[test]
    fn an_event_that_nats_would_refuse_is_not_written() {
        let data = "x".repeat(LARGEST);
        assert!(Event::new(CustomerId::new(), "1", "report", "finished", &data).is_err());
    }
}
