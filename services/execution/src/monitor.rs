//! Monitors: rules of a project that mute or skip test cases while they are flaky or slow. They are evaluated
//! in the background, when an execution has ended.

mod act;
mod alarm;
pub(crate) mod evaluation;
pub(crate) mod replay;
mod rules;
mod runs;
mod service;
pub(crate) mod store;

pub(crate) use self::{evaluation::spawn, service::MonitorService, store::remove_old};
