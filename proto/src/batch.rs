//! Batches: the messages that lists are streamed in.

use prost::bytes::Bytes;
use serde::{Serialize, de::DeserializeOwned};

use crate::Fault;

/// A `…Batch` message: consecutive records of a list as the elements of a JSON array, without its
/// brackets.
///
/// The service that owns the records renders them once. The gateway forwards the text.
pub trait Batch: prost::Message + Default + Clone {
    type Item: Listed + Serialize + DeserializeOwned + 'static;

    /// Returns the batch of these rendered records. `next_cursor` is that of the next page, if there
    /// is one.
    fn rendered(items: Bytes, next_cursor: Option<String>) -> Self;

    /// Returns the rendered records and the cursor of the next page.
    fn into_parts(self) -> (Bytes, Option<String>);

    /// Renders records. Fails if an enum has a number that is not in the contract.
    fn render(items: &[Self::Item], next_cursor: Option<String>) -> Result<Self, Fault> {
        let mut text = Vec::with_capacity(items.len() * 256);
        for item in items {
            if !text.is_empty() {
                text.push(b',');
            }
            serde_json::to_writer(&mut text, item).map_err(Fault::internal)?;
        }
        Ok(Self::rendered(text.into(), next_cursor))
    }

    /// Parses the records, for readers that need single fields.
    fn parse(&self) -> Result<Vec<Self::Item>, Fault> {
        let (items, _) = self.clone().into_parts();
        let array = [b"[", &items[..], b"]"].concat();
        serde_json::from_slice(&array).map_err(Fault::internal)
    }
}

/// A record as an entry of a list.
pub trait Listed: prost::Message + Default {
    /// Returns the cursor of the page that starts after this record.
    fn cursor(&self) -> &str;
}
