//! The messages and streams of the NATS server.

use std::time::Duration;

use assay_testkit::eventually;
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

    /// Makes the stream keep only so many messages, or all with -1.
    pub(crate) async fn keep_messages(&self, max_messages: i64) {
        let config = self.stream("ASSAY_CATALOG").await.cached_info().config.clone();
        let config = jetstream::stream::Config { max_messages, ..config };
        self.jetstream().update_stream(config).await.unwrap();
    }

    /// Makes the stream forget soon which messages it has had.
    pub(crate) async fn accept_duplicates(&self) {
        let config = self.stream("ASSAY_CATALOG").await.cached_info().config.clone();
        let duplicate_window = Duration::from_millis(100);
        let config = jetstream::stream::Config { duplicate_window, ..config };
        self.jetstream().update_stream(config).await.unwrap();
    }

    /// Returns the sequence up to which all consumers have received the stream, as the relay knows.
    pub(crate) async fn received(&self) -> Option<i64> {
        let received = sqlx::query_scalar("select sequence from outbox_stream");
        received.fetch_optional(&self.pool).await.unwrap()
    }

    /// Waits until the relay has examined the stream once more.
    pub(crate) async fn wait_until_checked(&self) {
        let checked = || async {
            let checked = "select max(xmin::text::bigint) from outbox_stream";
            sqlx::query_scalar::<_, Option<i64>>(checked).fetch_one(&self.pool).await.unwrap()
        };
        let before = checked().await;
        eventually("a check of the stream", || async { (checked().await > before).then_some(()) })
            .await;
    }
}
