//! Known failures: causes that are muted in later executions until a date.

pub mod expiry;
pub mod rules;
pub mod store;
pub mod undo;
