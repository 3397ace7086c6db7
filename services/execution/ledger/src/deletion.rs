//! Deleted projects and customers, whose executions are hidden at once and removed later.

pub mod records;
pub mod store;
