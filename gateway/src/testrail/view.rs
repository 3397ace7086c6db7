//! The links to runs that clients print, which lead to the pages of executions.

use assay_auth::Caller;
use assay_proto::execution::NumberedKind;
use axum::response::{IntoResponse, Redirect, Response};
use http::Uri;
use url::form_urlencoded;

use super::Session;
use crate::{problem::Problem, services::Services};

/// Returns the number of the run that a link leads to.
pub(super) fn run(uri: &Uri) -> Option<i64> {
    uri.query()?.strip_prefix("/runs/view/")?.parse().ok()
}

/// Leads to the page of a run, or to the login and back.
pub(super) async fn show(
    services: Services,
    caller: Result<Caller, Problem>,
    uri: &Uri,
    run: i64,
) -> Result<Response, Problem> {
    let Ok(caller) = caller else {
        let page = uri.path_and_query().map_or("/", |page| page.as_str());
        let page: String = form_urlencoded::byte_serialize(page.as_bytes()).collect();
        return Ok(Redirect::to(&format!("/login?next={page}")).into_response());
    };
    let session = Session { services, caller };
    let run = session.find(NumberedKind::Run, run).await?;
    let page = session.summary(&run).await?.url.ok_or_else(Problem::not_found)?;
    Ok(Redirect::to(&page).into_response())
}
