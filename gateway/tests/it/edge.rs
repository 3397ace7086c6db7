//! Who is let in, and how much of them.

use std::{
    convert::Infallible,
    future::ready,
    net::SocketAddr,
    time::{Duration, Instant},
};

use assay_testkit::eventually;
use axum::{body::Body, extract::ConnectInfo};
use futures::{StreamExt, future::join_all, stream};
use http::{StatusCode, request::Builder};
use tokio::time::timeout;

use crate::api::{Answer, Api, request};

/// The request as if it came from that address.
fn from(address: &str, request: Builder) -> Builder {
    request.extension(ConnectInfo::<SocketAddr>(address.parse().unwrap()))
}

async fn read(api: &Api, address: &str) -> Answer {
    api.send(from(address, api.request("GET", "/api/projects")), Body::empty()).await
}

#[tokio::test]
async fn an_address_has_so_many_requests_a_minute() {
    let api = Api::start_with(&["--requests-per-address=3", "--requests-per-customer=0"]).await;
    for rest in [2, 1, 0] {
        let answer = read(&api, "192.0.2.1:1000").await;
        assert_eq!(answer.status, StatusCode::OK);
        assert_eq!(answer.header("ratelimit-policy"), "\"address\";q=3;w=60");
        let until = (3 - rest) * 20;
        assert_eq!(answer.header("ratelimit"), format!("\"address\";r={rest};t={until}"));
    }
    let refused = read(&api, "192.0.2.1:2000").await;
    refused.problem(429, "busy");
    let pause: u64 = refused.header("retry-after").parse().unwrap();
    assert!((1..=20).contains(&pause), "{pause}");
    assert_eq!(read(&api, "192.0.2.2:1000").await.status, StatusCode::OK);

    // Who has an IPv6 address has many.
    for host in 1..=3 {
        let address = format!("[2001:db8::{host}]:1000");
        assert_eq!(read(&api, &address).await.status, StatusCode::OK);
    }
    read(&api, "[2001:db8::ffff:1]:1000").await.problem(429, "busy");
    assert_eq!(read(&api, "[2001:db8:0:1::1]:1000").await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_customer_has_so_many_requests_a_minute_from_wherever() {
    let api = Api::start_with(&["--requests-per-customer=2"]).await;
    for address in ["192.0.2.1:1000", "192.0.2.2:1000"] {
        let answer = read(&api, address).await;
        assert_eq!(answer.status, StatusCode::OK);
        let policy = "\"address\";q=6000;w=60, \"customer\";q=2;w=60";
        assert_eq!(answer.header("ratelimit-policy"), policy);
    }
    read(&api, "192.0.2.3:1000").await.problem(429, "busy");
    // Those without a token are nobody's.
    let anonymous = from("192.0.2.1:1000", request("GET", "/api/projects"));
    api.send(anonymous, Body::empty()).await.problem(401, "unauthenticated");
}

#[tokio::test]
async fn without_limits_nothing_is_counted() {
    let api = Api::start_with(&["--requests-per-address=0", "--requests-per-customer=0"]).await;
    for _ in 0..20 {
        let answer = read(&api, "192.0.2.1:1000").await;
        assert_eq!((answer.status, answer.header("ratelimit")), (StatusCode::OK, ""));
    }
}

/// A body that begins and does not go on.
fn stalled(beginning: Vec<u8>) -> Body {
    let beginning = stream::once(ready(Ok::<_, Infallible>(beginning)));
    Body::from_stream(beginning.chain(stream::pending()))
}

/// Sends the request again and again, until it is refused for too much being under way.
async fn overloaded(api: &Api, request: impl Fn() -> (Builder, Body)) -> Answer {
    eventually("it is too much", async || {
        let (request, body) = request();
        let answer = api.send(request, body).await;
        (answer.status == StatusCode::SERVICE_UNAVAILABLE).then_some(answer)
    })
    .await
}

#[tokio::test]
async fn a_customer_leaves_places_for_the_requests_of_others() {
    let api = Api::start_with(&["--requests-at-once=4"]).await;
    for _ in 0..3 {
        api.begin(api.request("POST", "/api/projects"), stalled(b"{".to_vec()));
    }
    let refused = overloaded(&api, || (api.request("GET", "/api/projects"), Body::empty())).await;
    refused.problem(503, "overloaded");
    assert_eq!(refused.header("retry-after"), "1");
    api.send(api.others_request("GET", "/api/projects/p"), Body::empty()).await.ok();
    assert_eq!(api.get("/livez").await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_customer_leaves_memory_for_the_bodies_of_others() {
    let api = Api::start().await;
    // Three quarters of 64 MiB, in pieces of 64 KiB; the first one of each body is free.
    for _ in 0..52 {
        api.begin(api.request("POST", "/api/projects"), stalled(vec![b' '; 1 << 20]));
    }
    let large = || Body::from(format!(r#"{{"Name":"{}"}}"#, "a".repeat(1 << 20).split_off(100)));
    overloaded(&api, || (api.request("POST", "/api/projects"), large())).await;
    for (request, body) in [
        (api.others_request("POST", "/api/projects"), large()),
        (api.request("POST", "/api/projects"), Body::from(r#"{"Name":"small"}"#)),
    ] {
        assert_eq!(api.send(request, body).await.status, StatusCode::CREATED);
    }
}

#[tokio::test]
async fn a_customer_leaves_calls_for_others() {
    let api = Api::start_with(&["--calls-at-once=4"]).await;
    for _ in 0..6 {
        api.begin(api.request("GET", "/api/projects/hangs"), Body::empty());
    }
    let waits = async || {
        timeout(Duration::from_millis(200), api.get("/api/projects/p")).await.is_err().then_some(())
    };
    eventually("the customer has all calls that it may have", waits).await;
    for _ in 0..10 {
        let request = api.others_request("GET", "/api/projects/p");
        timeout(Duration::from_secs(1), api.send(request, Body::empty())).await.unwrap().ok();
    }
}

#[tokio::test]
async fn nobody_waits_for_a_service_that_fails() {
    let api = Api::start_with(&["--calls-at-once=4"]).await;
    let began = Instant::now();
    let answers = join_all((0..30).map(|_| api.get("/api/projects/late"))).await;
    for answer in answers {
        answer.problem(503, "unavailable");
        assert_eq!(answer.header("retry-after"), "1");
    }
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    // The next one finds out whether it still fails.
    api.get("/api/projects/p").await.ok();
}

#[tokio::test]
async fn web_pages_of_other_hosts_are_let_in_only_if_they_are_named() {
    let preflight = |origin: &str| {
        let asks = request("OPTIONS", "/api/projects").header("Origin", origin);
        asks.header("Access-Control-Request-Method", "POST")
            .header("Access-Control-Request-Headers", "authentication, content-type")
    };
    let closed = Api::start().await;
    let answer = closed.send(preflight("https://evil.example"), Body::empty()).await;
    assert_eq!(answer.header("access-control-allow-origin"), "");

    let named = "--cors-origins=https://dashboard.example,http://localhost:3000";
    let open = Api::start_with(&[named]).await;
    for (origin, is_open) in [
        ("https://dashboard.example", true),
        ("http://localhost:3000", true),
        ("https://evil.example", false),
    ] {
        let allowed = if is_open { origin } else { "" };
        let answer = open.send(preflight(origin), Body::empty()).await;
        assert_eq!(answer.header("access-control-allow-origin"), allowed);
        assert_eq!(answer.status, StatusCode::OK);
        // Failures can be read, too.
        let read = request("GET", "/api/projects").header("Origin", origin);
        let answer = open.send(read, Body::empty()).await;
        answer.problem(401, "unauthenticated");
        assert_eq!(answer.header("access-control-allow-origin"), allowed);
        assert_eq!(answer.header("access-control-allow-credentials"), "");
    }
}
