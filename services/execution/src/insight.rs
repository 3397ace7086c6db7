//! Insights: the test cases of a project that are flaky, newly failing, failing most, slowest or
//! slower than before.

pub(crate) mod days;
mod ranking;
mod rollup;
mod service;
mod slower;

pub use self::rollup::roll_up;
pub(crate) use self::service::InsightService;
pub(crate) use self::{
    days::{INSIGHT, remove_old},
    rollup::spawn,
};
