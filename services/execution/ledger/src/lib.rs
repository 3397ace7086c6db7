//! The ledger of executions: what is recorded of them, what follows from it, and the one writer of
//! the consequences.
//!
//! [`progress`] is pure: from recorded facts it concludes the state of a report and of an execution.
//! The nouns read and write their rows. [`settle`] is the only place in which a result, an end or a
//! cancellation changes a report: it stores the facts, what follows from them, and the events, in
//! one transaction under the lock of the execution. Uploads, engines, agents, reviews, `verify` and
//! `rebuild` are built on top, and none of them concludes anything itself.

pub mod cause_rule;
pub mod change;
pub mod column;
pub mod deletion;
pub mod event;
pub mod execution;
pub mod failure;
pub mod incident;
mod insertion;
pub mod instance;
pub mod known_failure;
pub mod lease;
pub mod link;
pub mod monitor;
pub mod mute;
pub mod origin;
pub mod progress;
pub mod removal;
pub mod schedule;
mod series;
pub mod settle;
pub mod test_case_state;
pub mod test_report;
pub mod time_limits;
pub mod verdict;
