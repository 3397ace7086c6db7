//! Redirects of Assay, or of a proxy in front of it.

use std::sync::{Arc, Mutex};

use axum::{Router, extract::Request, http::StatusCode, response::IntoResponse, routing::post};

use super::{complete, execution, serve};

/// The requests that a server has received, as text.
type Received = Arc<Mutex<Vec<String>>>;

/// Starts a server that keeps what it receives.
async fn listening() -> (String, Received) {
    let received = Received::default();
    let kept = received.clone();
    let app = Router::new().fallback(async move |request: Request| {
        kept.lock().unwrap().push(format!("{request:?}"));
        axum::Json(execution()).into_response()
    });
    (serve(app).await, received)
}

fn redirecting(status: StatusCode, to: String) -> Router {
    Router::new().route("/api/executions", post(async move || (status, [("location", to)])))
}

#[tokio::test]
async fn the_token_does_not_follow_a_redirect() {
    let folder = tempfile::tempdir().unwrap();
    let (other, received) = listening().await;
    for status in [301, 302, 303, 307, 308] {
        let status = StatusCode::from_u16(status).unwrap();
        let url = serve(redirecting(status, format!("{other}/api/executions"))).await;
        let (code, output) = complete(&url, folder.path(), &[], "").await;
        assert_eq!(code, 3, "{status}: {output}");
        let remedy = format!("redirects to {other}");
        assert!(output.contains(&remedy) && output.contains("ASSAY_URL"), "{status}: {output}");
    }
    assert!(received.lock().unwrap().is_empty(), "{received:?}");
}

#[tokio::test]
async fn the_token_is_sent_in_the_standard_header() {
    let folder = tempfile::tempdir().unwrap();
    let (url, received) = listening().await;
    let (code, output) = complete(&url, folder.path(), &[], "").await;
    assert_eq!(code, 0, "{output}");
    let first = received.lock().unwrap()[0].to_lowercase();
    assert!(first.contains("\"authorization\""), "{first}");
}
