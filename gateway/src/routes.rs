//! The routes, in a module for each noun. A handler extracts its parameters, wraps them in a
//! request, calls a service and returns the response. Each route names the contract method that it
//! calls in `x-grpc-method`: the permission in the documentation follows from it.

mod api_token;
mod artifact;
mod audit;
mod automation;
mod backtest;
mod cause_rule;
mod classification;
mod customer;
mod engine;
mod environment;
mod execution;
mod execution_time;
mod failure;
mod favorite;
mod file;
mod incident;
mod insight;
mod keys;
mod known_failure;
mod live_log;
mod media;
mod metrics;
mod monitor;
mod notification;
mod password;
mod pool;
mod project;
mod results;
mod resumable;
mod share_link;
mod shared;
mod statistics;
mod subject;
mod test_case;
mod test_case_state;
mod test_plan;
mod test_report;
mod test_set;
mod token;
mod user;
mod user_group;
mod user_settings;
mod webhook;

use utoipa_axum::router::OpenApiRouter;

use crate::services::Services;

/// Returns all routes with their documentation.
pub(crate) fn all() -> OpenApiRouter<Services> {
    quick().merge(slow())
}

/// Returns the routes that respond soon, with their documentation.
pub(crate) fn quick() -> OpenApiRouter<Services> {
    let nouns = vec![
        token::routes(),
        keys::routes(),
        api_token::routes(),
        password::routes(),
        user::routes(),
        user_settings::routes(),
        user_group::routes(),
        customer::routes(),
        audit::routes(),
        project::routes(),
        favorite::routes(),
        test_case::routes(),
        test_plan::routes(),
        test_set::routes(),
        subject::routes(),
        environment::routes(),
        pool::routes(),
        file::routes(),
        resumable::routes(),
        execution::routes(),
        artifact::routes(),
        failure::routes(),
        share_link::routes(),
        shared::routes(),
        insight::routes(),
        execution_time::routes(),
        incident::routes(),
        backtest::routes(),
        known_failure::routes(),
        cause_rule::routes(),
        test_case_state::routes(),
        monitor::routes(),
        metrics::routes(),
        automation::routes(),
        live_log::routes(),
        engine::routes(),
        test_report::routes(),
        statistics::routes(),
        notification::routes(),
        webhook::routes(),
    ];
    nouns.into_iter().fold(OpenApiRouter::new(), OpenApiRouter::merge)
}

/// Returns the routes that may take long, with their documentation: the duration of uploads and
/// downloads depends on the connection, and engines wait for work.
pub(crate) fn slow() -> OpenApiRouter<Services> {
    let nouns = [
        results::routes(),
        artifact::slow_routes(),
        file::slow_routes(),
        resumable::slow_routes(),
        test_case::import_routes(),
        automation::slow_routes(),
    ];
    nouns.into_iter().fold(OpenApiRouter::new(), OpenApiRouter::merge)
}
