//! Batches: the messages that lists are streamed in.

/// A `…Batch` message: consecutive records of a list.
pub trait Batch: prost::Message + Default {
    type Item: Listed + 'static;

    /// Returns the batch of these records. `next_cursor` is that of the next page, if there is one.
    fn new(items: Vec<Self::Item>, next_cursor: Option<String>) -> Self;

    /// Returns the records and the cursor of the next page.
    fn into_parts(self) -> (Vec<Self::Item>, Option<String>);
}

/// A record as an entry of a list.
pub trait Listed: prost::Message + Default {
    /// Returns the cursor of the page that starts after this record.
    fn cursor(&self) -> &str;
}
