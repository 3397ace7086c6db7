//! How results change executions and test reports: their state and the rules, without a database.
//!
//! States are concluded from facts and never set. The facts of a report are the results of its instances,
//! the result of those that are missing, and the judgement of a reviewer ([`report::TestReportState::conclude`]).
//! Those of an execution are its reports, and whether it was canceled ([`execution::ExecutionState::conclude`]).
//! The writer applies results one by one and keeps counts; `verify` counts everything again. Both call the
//! same `conclude`, so they agree unless a count has drifted.

pub mod execution;
pub mod instance;
pub mod merge;
pub mod report;
pub mod rules;
pub mod totals;
