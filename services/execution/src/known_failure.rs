//! Known failures: causes that are muted in later executions until a date.

pub(crate) mod expiry;
mod service;

pub(crate) use self::service::KnownFailureService;
