//! Backtests: the verdicts that ended executions would have with another gate.

mod replay;
mod rules;
mod service;
mod store;
mod verdict;

pub(crate) use self::service::BacktestService;
