//! The messages and streams of the NATS server.

use async_nats::{HeaderMap, jetstream};
use futures::StreamExt as _;
use serde_json::Value;

use super::World;

impl World {
    /// Publishes a message without the outbox.
    pub(crate) async fn send(&self, subject: &str, headers: HeaderMap, payload: &[u8]) {
        let jetstream = self.jetstream();
        let payload = payload.to_vec().into();
        let sent = jetstream.publish_with_headers(subject.to_owned(), headers, payload);
        sent.await.unwrap().await.unwrap();
    }

    /// Removes all data of the NATS server.
    pub(crate) async fn lose_messages(&mut self) {
        self.broker.stop().await;
        self.broker.wipe();
        self.broker.start().await;
    }

    /// Returns the numbers in the stream, in order.
    pub(crate) async fn published(&self) -> Vec<i32> {
        let stream = self.stream("ASSAY_CATALOG").await;
        let count = stream.cached_info().state.messages;
        let config = jetstream::consumer::pull::OrderedConfig::default();
        let messages = stream.create_consumer(config).await.unwrap().messages().await.unwrap();
        let numbers = messages.take(usize::try_from(count).unwrap()).map(|message| {
            let event: Value = serde_json::from_slice(&message.unwrap().payload).unwrap();
            i32::try_from(event["data"].as_i64().unwrap()).unwrap()
        });
        numbers.collect().await
    }

    fn jetstream(&self) -> jetstream::Context {
        jetstream::new(self.nats.client().clone())
    }

    pub(crate) async fn stream(&self, name: &str) -> jetstream::stream::Stream {
        self.jetstream().get_stream(name).await.unwrap()
    }

    /// Returns the number of messages in a stream, 0 if the stream does not exist.
    pub(crate) async fn messages(&self, name: &str) -> u64 {
        let stream = self.jetstream().get_stream(name).await;
        stream.map(|stream| stream.cached_info().state.messages).unwrap_or_default()
    }

    /// Makes the stream reject larger messages.
    pub(crate) async fn limit_messages(&self, max_message_size: i32) {
        let config = self.stream("ASSAY_CATALOG").await.cached_info().config.clone();
        let config = jetstream::stream::Config { max_message_size, ..config };
        self.jetstream().update_stream(config).await.unwrap();
    }
}
