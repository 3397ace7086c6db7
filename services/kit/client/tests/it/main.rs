//! The client against servers and proxies that do not behave.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use assay_client::{Account, Client, ClientError, send};
use axum::{
    Router,
    body::{Body, Bytes},
    extract::Request,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use futures::stream;
use reqwest::Method;
use tokio::net::TcpListener;

/// The headers of the requests that a server has received.
type Received = Arc<Mutex<Vec<String>>>;

/// Starts a server that gives one answer. Returns its address.
#[expect(clippy::disallowed_methods, reason = "the server ends with the test")]
async fn serve(
    answer: impl Fn() -> Response + Clone + Send + Sync + 'static,
) -> (String, Received) {
    let received = Received::default();
    let kept = received.clone();
    let app = Router::new().fallback(async move |request: Request| {
        let headers = request.headers().iter();
        let headers = headers.map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()));
        kept.lock().unwrap().push(headers.collect::<Vec<_>>().join("\n"));
        answer()
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move { axum::serve(listener, app).await });
    (address, received)
}

fn client(url: &str, token: &str) -> Client {
    let account = Account { url: url.parse().unwrap(), token: token.into() };
    Client::new(&account, Duration::from_secs(2)).unwrap()
}

async fn get(url: &str) -> Result<Vec<u8>, ClientError> {
    let request = client(url, "secret").request(Method::GET, "/api/projects")?;
    send(request).await?.bytes(1 << 20).await
}

fn redirect(to: &str) -> Response {
    (StatusCode::FOUND, [("location", to)]).into_response()
}

#[tokio::test]
async fn an_error_names_the_url_that_assay_redirects_to() {
    for (location, named) in [
        ("https://other.example/api/projects?token=1", "https://other.example"),
        ("https://other.example/assay/api/projects", "https://other.example/assay"),
        ("//other.example:8443/", "http://other.example:8443/"),
        ("https://user:pw@other.example/login?next=/api/x", "https://other.example/login"),
        ("ftp://other.example/x", "ftp://other.example/x"),
        ("http://[", "an unknown place"),
    ] {
        let (address, received) = serve(move || redirect(location)).await;
        let error = get(&format!("http://{address}")).await.unwrap_err();
        assert!(error.is_permanent());
        let error = error.to_string();
        assert!(error.contains(&format!("redirects to {named}, ")), "{location}: {error}");
        assert!(error.contains("ASSAY_URL") && !error.contains("token=1"), "{location}: {error}");
        assert_eq!(received.lock().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn a_redirect_within_the_origin_is_not_followed() {
    let (address, received) = serve(|| redirect("/api/projects/")).await;
    let error = get(&format!("http://{address}")).await.unwrap_err().to_string();
    assert!(error.contains(&format!("redirects to http://{address}")), "{error}");
    assert_eq!(received.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn the_password_of_a_proxy_keeps_its_header() {
    let (address, received) = serve(|| "x".into_response()).await;
    get(&format!("http://{address}")).await.unwrap();
    get(&format!("http://user:pw@{address}")).await.unwrap();
    let received = received.lock().unwrap().clone();
    assert!(received[0].contains("authorization: Bearer secret"), "{received:?}");
    assert!(received[1].contains("authorization: Basic"), "{received:?}");
    assert!(received[1].contains("authentication: Bearer secret"), "{received:?}");
}

#[tokio::test]
async fn a_token_with_line_breaks_is_refused() {
    let request =
        client("http://127.0.0.1:1", "a\r\nHost: b").request(Method::GET, "/api/projects");
    assert!(request.unwrap_err().to_string().contains("ASSAY_TOKEN"));
}

#[tokio::test]
async fn a_body_has_a_limit_and_a_deadline() {
    let drip = || {
        // One byte at each tick, so that the body never rests for long and never ends.
        let ticks = tokio::time::interval(Duration::from_millis(100));
        let drops = stream::unfold(ticks, async |mut ticks| {
            ticks.tick().await;
            Some((Ok::<_, std::io::Error>(Bytes::from_static(b" ")), ticks))
        });
        Body::from_stream(drops).into_response()
    };
    let (address, _) = serve(drip).await;
    let begun = Instant::now();
    let error = get(&format!("http://{address}")).await.unwrap_err();
    assert!(!error.is_permanent() && begun.elapsed() < Duration::from_secs(10), "{error}");

    let (address, _) = serve(|| vec![b'x'; (1 << 20) + 1].into_response()).await;
    let error = get(&format!("http://{address}")).await.unwrap_err();
    assert!(matches!(error, ClientError::TooLarge { limit: 1_048_576 }), "{error}");
}

#[tokio::test]
async fn a_problem_of_any_form_is_reported_on_one_line() {
    for body in ["", "{}", "[1]", "null", r#"{"code":"a\nb","detail":"\u001b[2J::error::"}"#] {
        let problem = move || (StatusCode::BAD_REQUEST, body).into_response();
        let (address, _) = serve(problem).await;
        let error = get(&format!("http://{address}")).await.unwrap_err().to_string();
        assert!(error.starts_with("400 Bad Request"), "{error}");
        assert!(!error.contains(['\n', '\u{1b}']), "{error}");
    }
}
