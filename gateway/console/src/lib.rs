//! The web console: pages to read and judge results.
//!
//! It renders HTML from the public interface, which it calls within the program as the user of the
//! page. So a page can show and do only what any client can.

mod api;
mod asset;
mod chart;
mod failure;
mod layout;
mod page;
mod session;
mod text;

use axum::{
    Router,
    http::Extensions,
    middleware::from_fn,
    response::{IntoResponse, Response},
};
use http::header::CONTENT_TYPE;

use self::failure::Problem;

/// The extensions of the request to a page, in those of its calls to the interface.
#[derive(Clone)]
pub struct Visit(pub Extensions);

/// The interface that pages call.
#[derive(Clone)]
pub(crate) struct Console {
    api: Router,
}

/// Returns the pages, which call these routes of the interface.
pub fn routes(api: Router) -> Router {
    page::routes()
        .merge(session::routes())
        .layer(from_fn(session::guard))
        .merge(asset::routes())
        .with_state(Console { api })
}

/// Turns a problem into a page. Layers around the pages refuse requests with problems.
pub async fn explain(response: Response) -> Response {
    let content_type = response.headers().get(CONTENT_TYPE);
    if content_type.is_none_or(|content_type| content_type != "application/problem+json") {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap_or_default();
    let page = Problem::read(parts.status, &body).into_response();
    for length in [http::header::CONTENT_LENGTH, CONTENT_TYPE] {
        parts.headers.remove(length);
    }
    let (page, body) = page.into_parts();
    parts.headers.extend(page.headers);
    Response::from_parts(parts, body)
}
