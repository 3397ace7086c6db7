//! Incidents: failures of many tests that are evidence about their environment. They are derived after an
//! execution has completed. The failures stay listed, and verdicts stay as they are.

mod derive;
pub(crate) mod drift;
mod evidence;
mod service;
mod store;
mod worker;

pub use self::worker::seek_incidents;
pub(crate) use self::{
    service::IncidentService,
    worker::{INCIDENT, spawn},
};
