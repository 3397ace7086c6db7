//! The pages, in a module for each noun.

mod account;
mod announcement;
mod backtest;
mod branch;
mod case;
mod case_state;
mod cases;
mod cause_rule;
mod classification;
mod engine;
mod execution;
mod executions;
mod gate;
mod incident;
mod insight;
mod known_failure;
mod login;
mod monitor;
mod paged;
mod part;
mod password;
mod pool;
mod project;
mod projects;
mod report;
mod review;
mod row;
mod set;
mod share_link;
mod shared;
mod triage;
mod upload;
mod usage;
mod version;

use axum::{Router, routing::any};

use crate::{api::Console, failure::Failure};

pub(crate) fn routes() -> Router<Console> {
    let pages = [
        projects::routes(),
        engine::routes(),
        project::routes(),
        set::routes(),
        gate::routes(),
        execution::routes(),
        triage::routes(),
        share_link::routes(),
        shared::routes(),
        report::routes(),
        case::routes(),
        cases::routes(),
        insight::routes(),
        incident::routes(),
        known_failure::routes(),
        cause_rule::routes(),
        monitor::routes(),
        pool::routes(),
        usage::routes(),
        account::routes(),
        login::routes(),
        password::routes(),
    ];
    let pages = pages.into_iter().fold(Router::new(), Router::merge);
    pages.route("/{*path}", any(async || Failure::not_found()))
}
