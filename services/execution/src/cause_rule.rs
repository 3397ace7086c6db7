//! Rules of a project for the causes of its failures.

mod preview;
mod resolve;
mod rules;
mod service;
mod worker;

pub use self::worker::derive_changed;
pub(crate) use self::{
    service::CauseRuleService,
    worker::{CAUSES, spawn},
};
