//! Requests that compete for turns.

use clap::Parser;
use futures::{FutureExt, future::join_all};
use http::HeaderMap;

use super::*;

#[derive(Parser)]
struct Options {
    #[command(flatten)]
    edge: EdgeConfig,
}

fn limits(options: &[&str]) -> Limits {
    Limits::new(&Options::parse_from(["test"].iter().chain(options)).edge)
}

async fn admit(limits: &Limits, host: u8, token: &str) -> Result<RequestLimits, Problem> {
    let client = ClientAddress(Some([192, 0, 2, host].into()));
    let mut headers = HeaderMap::new();
    headers.insert("authentication", token.parse().unwrap());
    limits.admit(client, &headers, Pace::Quick).await
}

/// Lets a request with this token be the first of a customer.
async fn verify(limits: &Limits, token: &str) {
    let request = admit(limits, 1, token).await.unwrap();
    request.charge_customer(CustomerId::new()).unwrap();
}

#[tokio::test(start_paused = true)]
async fn forged_tokens_occupy_the_turns_of_their_address() {
    let limits = limits(&["--requests-at-once=8"]);
    verify(&limits, "valid").await;
    let mut held = Vec::new();
    for number in 0..6 {
        held.push(admit(&limits, 2, &format!("forged {number}")).await.unwrap());
    }
    assert!(admit(&limits, 2, "forged").await.is_err());
    drop(admit(&limits, 2, "valid").now_or_never().expect("the customer does not wait").unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_token_that_is_not_valid_any_more_counts_as_forged() {
    let limits = limits(&["--requests-at-once=1", "--requests-per-customer=2"]);
    verify(&limits, "revoked").await;
    admit(&limits, 1, "revoked").await.unwrap().forget_token();
    for _ in 0..5 {
        drop(admit(&limits, 1, "revoked").await.unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn refusals_are_sent_late() {
    let limits = limits(&["--requests-at-once=1", "--requests-per-address=2"]);
    let arrived = Instant::now();
    let held = admit(&limits, 1, "one").await.unwrap();
    assert!(arrived.elapsed().is_zero());
    for refused in [admit(&limits, 1, "no turn").await, admit(&limits, 1, "no rate").await] {
        assert!(refused.is_err());
    }
    assert!(arrived.elapsed() >= 2 * PATIENCE);
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn clients_that_retry_at_once_get_a_thousand_refusals_a_second() {
    let limits = limits(&["--requests-at-once=1", "--requests-per-customer=1"]);
    for token in ["greedy", "other"] {
        verify(&limits, token).await;
    }
    let refusal = async |token| {
        let arrived = Instant::now();
        assert!(admit(&limits, 1, token).await.is_err());
        arrived.elapsed()
    };
    let crowd = join_all((0..3000).map(|_| refusal("greedy")));
    let (crowd, other) = tokio::join!(crowd, refusal("other"));
    let within = |time| crowd.iter().filter(|held_back| **held_back <= time).count();
    for (seconds, most) in [(1, 1000), (2, 2000)] {
        assert!(within(Duration::from_secs(seconds)) <= most);
    }
    assert!(other < 2 * PATIENCE, "the refusals of one customer do not delay those of another");
}

#[tokio::test(start_paused = true)]
async fn agents_are_charged_for_launches_and_not_for_requests() {
    let limits = limits(&["--requests-per-address=3", "--requests-per-customer=2"]);
    verify(&limits, "agent").await;
    let client = ClientAddress(Some([192, 0, 2, 1].into()));
    let mut headers = HeaderMap::new();
    headers.insert("authorization", "bearer agent".parse().unwrap());
    for _ in 0..100 {
        drop(limits.admit(client, &headers, Pace::Reporting).await.unwrap());
    }
    headers.insert("authorization", "bearer forged".parse().unwrap());
    for _ in 0..2 {
        drop(limits.admit(client, &headers, Pace::Reporting).await.unwrap());
    }
    assert!(limits.admit(client, &headers, Pace::Reporting).await.is_err(), "not a known token");
}
