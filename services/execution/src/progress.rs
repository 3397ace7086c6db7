//! How results change executions and test reports: their state and the rules, without a database.

pub(crate) mod execution;
pub(crate) mod instance;
pub(crate) mod merge;
pub(crate) mod report;
pub(crate) mod rules;
pub(crate) mod totals;
