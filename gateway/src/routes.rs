//! The routes, a module for each noun. Every handler extracts, wraps, calls and returns.

mod customer;
mod environment;
mod execution;
mod keys;
mod notification;
mod project;
mod results;
mod subject;
mod test_case;
mod test_plan;
mod test_report;
mod test_set;
mod token;

use axum::middleware::from_fn;
use utoipa_axum::router::OpenApiRouter;

use crate::{edge::hurry, services::Services};

/// All routes, with what they say about themselves.
pub(crate) fn all() -> OpenApiRouter<Services> {
    let quick = [
        token::routes(),
        keys::routes(),
        customer::routes(),
        project::routes(),
        test_case::routes(),
        test_plan::routes(),
        test_set::routes(),
        subject::routes(),
        environment::routes(),
        execution::routes(),
        test_report::routes(),
        notification::routes(),
    ];
    let quick = quick.into_iter().fold(OpenApiRouter::new(), OpenApiRouter::merge);
    // Uploads take as long as the line between the client and us.
    quick.route_layer(from_fn(hurry)).merge(results::routes())
}
