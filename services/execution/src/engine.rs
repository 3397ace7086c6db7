//! Engines that have asked for work, and the queues in which work waits for them.

pub(crate) mod length;
pub(crate) mod registry;
mod service;
mod store;

pub(crate) use self::{service::EngineService, store::remove_all};
