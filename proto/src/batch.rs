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

    /// Renders rows. Fails if an enum has a number that is not in the contract.
    fn render(rows: &[impl RowOf<Self::Item>], next_cursor: Option<String>) -> Result<Self, Fault> {
        // Each row is followed by a comma, or is the last.
        let size = rows.iter().map(|row| row.size() + 1).sum();
        let mut text = Vec::with_capacity(size);
        for row in rows {
            if !text.is_empty() {
                text.push(b',');
            }
            row.render(&mut text)?;
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

/// A row of a list.
pub trait Listed: Send + Sync {
    /// Returns the cursor of the page that starts after this row.
    fn cursor(&self) -> &str;

    /// Returns the approximate number of bytes of the row.
    fn size(&self) -> usize;
}

/// A row that has a record as JSON: the message itself, or what was rendered of it.
pub trait RowOf<T>: Listed {
    /// Appends the JSON.
    fn render(&self, text: &mut Vec<u8>) -> Result<(), Fault>;
}

impl<T: Listed + Serialize> RowOf<T> for T {
    fn render(&self, text: &mut Vec<u8>) -> Result<(), Fault> {
        serde_json::to_writer(text, self).map_err(Fault::internal)
    }
}
