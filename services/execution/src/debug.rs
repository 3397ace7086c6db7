//! Debug records: everything that is stored about a test report, for troubleshooting.

mod service;
mod store;

pub(crate) use self::service::DebugService;
