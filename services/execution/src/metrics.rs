//! Metrics of projects for monitoring systems.

mod service;
mod store;

pub(crate) use self::service::MetricsService;
