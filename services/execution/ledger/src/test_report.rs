//! Test reports: the outcome of one test case in one execution.

pub mod path;
pub mod store;
