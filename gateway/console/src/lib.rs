//! The web console: pages to read and judge results.
//!
//! It renders HTML from the public interface, which it calls within the program as the user of the
//! page. So a page can show and do only what any client can.

mod api;
mod asset;
mod chart;
mod claims;
mod failure;
mod layout;
mod page;
mod record;
mod session;
mod text;

use axum::{
    Router,
    body::to_bytes,
    middleware::from_fn,
    response::{IntoResponse, Response},
};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};

use self::{api::Console, failure::Problem};
pub use self::{
    api::Visit,
    record::Outcome,
    session::token,
    text::{duration, duration_if_known, taken},
};

/// Maximum size of a problem, in bytes.
const PROBLEM_LIMIT: usize = 1 << 20;

/// Returns the pages, which call these routes of the interface.
pub fn routes(api: Router) -> Router {
    page::routes().layer(from_fn(session::guard)).merge(asset::routes()).with_state(Console { api })
}

/// Turns a problem into a page. Layers around the pages refuse requests with problems.
pub async fn explain(response: Response) -> Response {
    let content_type = response.headers().get(CONTENT_TYPE);
    if content_type.is_none_or(|content_type| content_type != "application/problem+json") {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let body = to_bytes(body, PROBLEM_LIMIT).await.unwrap_or_default();
    let (page, body) = Problem::read(parts.status, &body).into_response().into_parts();
    parts.headers.remove(CONTENT_LENGTH);
    parts.headers.remove(CONTENT_TYPE);
    for (name, value) in &page.headers {
        // Headers that layers around the pages have set are for all responses to this path.
        parts.headers.entry(name).or_insert_with(|| value.clone());
    }
    Response::from_parts(parts, body)
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    #[tokio::test]
    async fn a_refused_request_is_explained_by_a_page() {
        let problem = r#"{"detail": "too many requests from <here>", "traceId": "4711"}"#;
        let response = Response::builder()
            .status(429)
            .header(CONTENT_TYPE, "application/problem+json")
            .header("retry-after", "7")
            .body(Body::from(problem))
            .unwrap();
        let (parts, body) = explain(response).await.into_parts();
        assert_eq!(
            (parts.status.as_u16(), &parts.headers["retry-after"]),
            (429, &"7".parse().unwrap())
        );
        assert_eq!(parts.headers[CONTENT_TYPE], "text/html; charset=utf-8");
        let page = to_bytes(body, usize::MAX).await.unwrap();
        let page = String::from_utf8_lossy(&page);
        for text in ["Too many requests", "from &lt;here&gt;", "4711"] {
            assert!(page.contains(text), "{page}");
        }
    }

    #[tokio::test]
    async fn other_responses_are_kept() {
        let response = explain("a page".into_response()).await;
        assert_eq!(to_bytes(response.into_body(), usize::MAX).await.unwrap(), "a page");
    }
}
