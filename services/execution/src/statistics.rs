//! Statistics of the executions of a test set and of a test case.

mod comparison;
mod filter;
mod flakiness;
mod grid;
mod service;
pub(crate) mod store;

pub(crate) use self::service::StatisticsService;
