//! Test reports: the outcome of one test case in one execution.

pub(crate) mod entries;
pub(crate) mod list;
mod position;
mod review;
mod rules;
mod service;

pub(crate) use self::{position::LEADING_CAUSES, service::TestReportService};
