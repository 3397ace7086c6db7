//! How results change executions and test reports: their state and the rules, without a database.

pub mod execution;
pub mod instance;
pub mod merge;
pub mod report;
pub mod rules;
pub mod totals;
