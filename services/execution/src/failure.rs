//! Failures: the instances whose last attempt failed, and the reports that an engine could not run,
//! with a fingerprint of the cause.

pub(crate) mod list;
mod place;
mod service;

pub(crate) use self::service::FailureService;
