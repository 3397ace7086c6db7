//! The pages, in a module for each noun.

mod account;
mod case;
mod cases;
mod execution;
mod insight;
mod known_failure;
mod part;
mod project;
mod projects;
mod report;
mod review;
mod row;
mod set;
mod upload;

use axum::{Router, routing::any};
use serde::{Deserialize, Deserializer, Serialize};

use crate::{Console, failure::Failure};

pub(crate) fn routes() -> Router<Console> {
    let pages = [
        projects::routes(),
        project::routes(),
        set::routes(),
        execution::routes(),
        report::routes(),
        case::routes(),
        cases::routes(),
        insight::routes(),
        known_failure::routes(),
        account::routes(),
    ];
    let pages = pages.into_iter().fold(Router::new(), Router::merge);
    pages.route("/{*path}", any(async || Failure::not_found()))
}

/// The query of a call that lists records.
#[derive(Serialize)]
struct Listed<'a, F> {
    limit: u32,
    #[serde(flatten)]
    filter: &'a F,
}

/// Reads a query parameter; an empty one is absent, as fields of forms are.
fn unless_empty<'de, D: Deserializer<'de>>(input: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<String>::deserialize(input)?.filter(|text| !text.is_empty()))
}
