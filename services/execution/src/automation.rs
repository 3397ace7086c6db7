//! The work of engines: they lease schedules, renew the leases and report results.

mod dequeue;
mod end;
mod hand_over;
mod records;
mod renew;
mod rules;
mod service;

pub(crate) use self::service::AutomationService;
