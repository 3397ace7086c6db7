//! Lists travel in batches.

/// A `…Batch` message: some records of a list.
pub trait Batch: prost::Message + Default {
    type Item: Listed + 'static;

    /// The batch of these records; `next_cursor` says where the next page starts, if the list was
    /// limited and there is one.
    fn new(items: Vec<Self::Item>, next_cursor: Option<String>) -> Self;

    fn into_parts(self) -> (Vec<Self::Item>, Option<String>);
}

/// A record as lists show it.
pub trait Listed: prost::Message + Default {
    /// Where the part of the list after this record starts.
    fn cursor(&self) -> &str;
}
