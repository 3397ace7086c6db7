//! States of test cases: which are muted or skipped until a date.

mod service;

pub(crate) use self::service::TestCaseStateService;
