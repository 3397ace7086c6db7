//! Known failures: causes that are muted in later executions until a date.

mod service;

pub(crate) use self::service::KnownFailureService;
