//! Limits of requests for each address and customer, and CORS.

use std::{
    convert::Infallible,
    future::{pending, ready},
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use assay_testkit::eventually;
use axum::{body::Body, extract::ConnectInfo};
use futures::{StreamExt, future::join_all, stream};
use http::{StatusCode, request::Builder};
use tokio::{sync::Semaphore, time::timeout};

use crate::api::{Answer, Api, request};

/// The request with this peer address.
fn from(address: &str, request: Builder) -> Builder {
    request.extension(ConnectInfo::<SocketAddr>(address.parse().unwrap()))
}

async fn read(api: &Api, address: &str) -> Answer {
    api.send(from(address, api.request("GET", "/api/projects")), Body::empty()).await
}

#[tokio::test]
async fn requests_of_an_address_are_limited_each_minute() {
    let api = Api::start_with(&["--requests-per-address=3", "--requests-per-customer=0"]).await;
    for rest in [2, 1, 0] {
        let answer = read(&api, "192.0.2.1:1000").await;
        assert_eq!(answer.status, StatusCode::OK);
        assert_eq!(answer.header("ratelimit-policy"), "\"address\";q=3;w=60");
        let until = (3 - rest) * 20;
        assert_eq!(answer.header("ratelimit"), format!("\"address\";r={rest};t={until}"));
    }
    let rejected = read(&api, "192.0.2.1:2000").await;
    rejected.problem(429, "busy");
    assert!(!rejected.header("x-request-id").is_empty());
    let pause: u64 = rejected.header("retry-after").parse().unwrap();
    assert!((1..=20).contains(&pause), "{pause}");
    assert_eq!(read(&api, "192.0.2.2:1000").await.status, StatusCode::OK);

    // An IPv6 client controls a whole /64 network.
    for host in 1..=3 {
        let address = format!("[2001:db8::{host}]:1000");
        assert_eq!(read(&api, &address).await.status, StatusCode::OK);
    }
    read(&api, "[2001:db8::ffff:1]:1000").await.problem(429, "busy");
    assert_eq!(read(&api, "[2001:db8:0:1::1]:1000").await.status, StatusCode::OK);
}

#[tokio::test]
async fn requests_of_a_customer_are_limited_across_addresses() {
    let api = Api::start_with(&["--requests-per-customer=2"]).await;
    for address in ["192.0.2.1:1000", "192.0.2.2:1000"] {
        let answer = read(&api, address).await;
        assert_eq!(answer.status, StatusCode::OK);
        let policy = "\"address\";q=6000;w=60, \"customer\";q=2;w=60";
        assert_eq!(answer.header("ratelimit-policy"), policy);
    }
    read(&api, "192.0.2.3:1000").await.problem(429, "busy");
    // Requests without a token count for no customer.
    let anonymous = from("192.0.2.1:1000", request("GET", "/api/projects"));
    api.send(anonymous, Body::empty()).await.problem(401, "unauthenticated");
}

#[tokio::test]
async fn a_limit_of_0_disables_rate_limiting() {
    let api = Api::start_with(&["--requests-per-address=0", "--requests-per-customer=0"]).await;
    for _ in 0..20 {
        let answer = read(&api, "192.0.2.1:1000").await;
        assert_eq!((answer.status, answer.header("ratelimit")), (StatusCode::OK, ""));
    }
}

/// A body that stalls after its first bytes, and then adds a permit.
fn stalled(first: Vec<u8>, stalls: &Arc<Semaphore>) -> Body {
    let stalls = stalls.clone();
    let first = stream::once(ready(Ok::<_, Infallible>(first)));
    let rest = stream::once(async move {
        stalls.add_permits(1);
        pending().await
    });
    Body::from_stream(first.chain(rest))
}

/// Sends requests of one customer, and waits until all their bodies stall.
async fn stall(api: &Api, requests: u32, first: &[u8]) {
    let stalls = Arc::new(Semaphore::new(0));
    for _ in 0..requests {
        let body = stalled(first.to_vec(), &stalls);
        api.spawn_request(api.request("POST", "/api/projects"), body);
    }
    let _all = stalls.acquire_many(requests).await.unwrap();
}

#[tokio::test]
async fn a_customer_cannot_have_all_requests_that_wait_for_their_body() {
    let api = Api::start_with(&["--requests-at-once=4"]).await;
    stall(&api, 3, b"{").await;
    let slow = stalled(b"{".to_vec(), &Arc::new(Semaphore::new(0)));
    let rejected = api.send(api.request("POST", "/api/projects"), slow).await;
    rejected.problem(503, "overloaded");
    assert_eq!(rejected.header("retry-after"), "1");
    // Other requests of the customer are served, and those of another customer.
    api.get("/api/projects/p").await.ok();
    api.send(api.others_request("GET", "/api/projects/p"), Body::empty()).await.ok();
}

#[tokio::test]
async fn a_request_that_waits_too_long_for_its_turn_is_refused() {
    let api = Api::start_with(&["--requests-at-once=4"]).await;
    // The token is known from now on, so that requests wait for the turns of their customer.
    api.get("/api/projects/p").await.ok();
    for _ in 0..3 {
        api.spawn_request(api.request("GET", "/api/projects/hangs"), Body::empty());
    }
    calls(&api, 3).await;
    let queued = || api.get("/api/projects/p");
    let (first, second) = tokio::join!(queued(), queued());
    for rejected in [first, second] {
        rejected.problem(503, "overloaded");
        assert_eq!(rejected.header("retry-after"), "1");
        assert_eq!(rejected.header("cache-control"), "no-store");
        assert!(!rejected.header("x-request-id").is_empty());
    }
    // Requests that are not limited, and those of another customer, are served at once.
    assert_eq!(api.get("/livez").await.status, StatusCode::OK);
    for _ in 0..10 {
        api.send(api.others_request("GET", "/api/projects/p"), Body::empty()).await.ok();
    }
    // A turn that is given back goes to a request that waits.
    let (served, ()) = tokio::join!(queued(), async { api.hanging.fail() });
    served.ok();
}

#[tokio::test]
async fn a_customer_cannot_use_all_memory_for_bodies() {
    let api = Api::start().await;
    // Three quarters of 128 MiB, in chunks of 64 KiB; the first chunk of each body is not counted.
    stall(&api, 102, &vec![b' '; 1 << 20]).await;
    let large = || Body::from(format!(r#"{{"Name":"{}"}}"#, "a".repeat(1 << 20).split_off(100)));
    let rejected = api.send(api.request("POST", "/api/projects"), large()).await;
    rejected.problem(503, "overloaded");
    for (request, body) in [
        (api.others_request("POST", "/api/projects"), large()),
        (api.request("POST", "/api/projects"), Body::from(r#"{"Name":"small"}"#)),
    ] {
        assert_eq!(api.send(request, body).await.status, StatusCode::CREATED);
    }
}

#[tokio::test]
async fn a_body_of_too_many_values_is_refused_before_it_is_parsed() {
    let api = Api::start().await;
    for (path, values) in [
        ("/api/projects/p/testcases/c/testplans/t", "{}"),
        ("/api/projects/p/testcases/c/testplans/t", "0"),
        ("/api/projects/p", "[]"),
    ] {
        let body = format!(r#"{{"Variables":[{}]}}"#, vec![values; 1_400_000].join(","));
        let refused = api.send(api.request("PUT", path), Body::from(body)).await;
        let problem = refused.problem(413, "too_large");
        assert!(problem["detail"].as_str().unwrap().contains("too many"), "{problem}");
    }
}

#[tokio::test]
async fn a_record_that_services_do_not_accept_is_refused_with_its_limit() {
    let api = Api::start().await;
    let body = format!(r#"{{"Description":"{}"}}"#, "x".repeat(5 << 20));
    let refused = api.send(api.request("PUT", "/api/projects/p"), Body::from(body)).await;
    let problem = refused.problem(413, "too_large");
    assert!(problem["detail"].as_str().unwrap().contains("4 MiB"), "{problem}");
}

#[tokio::test]
async fn a_caller_without_permission_is_refused_before_the_body_is_read() {
    let api = Api::start().await;
    for (method, path) in
        [("POST", "/api/management/customers"), ("PUT", "/api/management/customers/c")]
    {
        let endless = stalled(b"{".to_vec(), &Arc::new(Semaphore::new(0)));
        let refused = timeout(Duration::from_secs(5), api.send(api.request(method, path), endless));
        refused.await.expect("the answer does not wait for the body").problem(403, "forbidden");
    }
}

#[tokio::test]
async fn a_customer_cannot_use_all_calls_to_a_service() {
    let api = Api::start_with(&["--calls-at-once=4"]).await;
    for _ in 0..6 {
        api.spawn_request(api.request("GET", "/api/projects/hangs"), Body::empty());
    }
    calls(&api, 3).await;
    for _ in 0..10 {
        let request = api.others_request("GET", "/api/projects/p");
        timeout(Duration::from_secs(1), api.send(request, Body::empty())).await.unwrap().ok();
    }
    assert_eq!(api.hanging.calls(), 3, "the others wait");
}

/// Waits until the service has so many calls that hang.
async fn calls(api: &Api, count: usize) {
    let reached = async || (api.hanging.calls() == count).then_some(());
    eventually("the calls that a customer may make at once", reached).await;
}

#[tokio::test]
async fn queued_calls_fail_at_once_when_a_service_is_unavailable() {
    let api = Api::start_with(&["--calls-at-once=4"]).await;
    let outage = async {
        calls(&api, 3).await;
        // The service fails late, as if it had waited for its database.
        tokio::time::pause();
        tokio::time::advance(Duration::from_millis(1500)).await;
        tokio::time::resume();
        api.hanging.fail();
    };
    let requests = join_all((0..30).map(|_| api.get("/api/projects/hangs")));
    let (answers, ()) = tokio::join!(requests, outage);
    for answer in answers {
        answer.problem(503, "unavailable");
        assert_eq!(answer.header("retry-after"), "1");
    }
    assert_eq!(api.hanging.calls(), 3, "queued calls do not reach the service");
    // The next call checks whether the service has recovered.
    api.get("/api/projects/p").await.ok();
}

#[tokio::test]
async fn cors_allows_only_configured_origins() {
    let preflight = |origin: &str| {
        let preflight = request("OPTIONS", "/api/projects").header("Origin", origin);
        preflight
            .header("Access-Control-Request-Method", "POST")
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
        // Scripts can read errors, too.
        let read = request("GET", "/api/projects").header("Origin", origin);
        let answer = open.send(read, Body::empty()).await;
        answer.problem(401, "unauthenticated");
        assert_eq!(answer.header("access-control-allow-origin"), allowed);
        assert_eq!(answer.header("access-control-allow-credentials"), "");
    }
}
