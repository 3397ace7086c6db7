//! Calls to a program that is down, hangs or fails.

use std::{pin::pin, time::Duration};

use assay_testkit::{Wire, black_hole, eventually};
use futures::{FutureExt, StreamExt, future::join_all, stream};
use tokio::{net::TcpListener, time};
use tonic::Code;

use crate::world::{Client, Conduct, Program, measured};

/// Maximum time until a call to an unavailable program fails.
const DETECTED: Duration = Duration::from_secs(3);

/// Maximum time until a call fails once the outage is known.
const AT_ONCE: Duration = Duration::from_millis(400);

/// Maximum time until a program that is available again is called.
const BACK: Duration = Duration::from_secs(1);

async fn back(client: &Client) -> Duration {
    let answered = eventually("an answer", || client.read().map(Result::ok));
    measured("back", answered).await.1
}

#[tokio::test(flavor = "multi_thread")]
async fn the_death_and_the_return_of_a_program_are_noticed_at_once() {
    let program = Program::start("a").await;
    let wire = Wire::to(program.address).await.unwrap();
    let client = Client::of(wire.address());
    assert_eq!(client.read().await.unwrap(), "a");

    wire.cut();
    eventually("a failure", || client.write().map(Result::err)).await;
    let (failed, taken) = measured("killed", client.read()).await;
    assert_eq!(failed.unwrap_err().code(), Code::Unavailable);
    assert!(taken < AT_ONCE);

    wire.restore();
    assert!(back(&client).await < BACK);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_hangs_is_detected_and_called_again_when_it_recovers() {
    let program = Program::start("a").await;
    let wire = Wire::to(program.address).await.unwrap();
    let client = Client::of(wire.address());
    program.conduct.send_replace(Conduct::Works);
    let in_flight = [client.read().boxed(), client.write().boxed()];
    let (failed, taken) = measured("frozen", async {
        let mut in_flight = pin!(join_all(in_flight));
        eventually("open calls", || {
            let waits = (&mut in_flight).now_or_never().is_none();
            assert!(waits, "the calls are pending");
            async { (program.calls.open() == 2).then_some(()) }
        })
        .await;
        wire.freeze();
        measured("frozen", in_flight).await
    })
    .await
    .0;
    for failed in failed {
        assert_eq!(failed.unwrap_err().code(), Code::Unavailable);
    }
    assert!(taken < DETECTED, "{taken:?}");
    // Longer than an attempt to reconnect.
    for _ in 0..10 {
        let (failed, taken) = measured("known to be frozen", client.write()).await;
        assert_eq!(failed.unwrap_err().code(), Code::Unavailable);
        assert!(taken < AT_ONCE, "{taken:?}");
    }

    program.conduct.send_replace(Conduct::Answers);
    wire.restore();
    assert!(back(&client).await < BACK);
    assert_eq!(program.calls.writes(), 1, "failed calls are not sent later");
}

#[tokio::test]
async fn calls_to_an_unreachable_address_fail_within_seconds() {
    let (address, _kept) = black_hole().await.unwrap();
    let client = Client::of(address);
    let (failed, taken) = measured("black hole", client.read()).await;
    assert_eq!(failed.unwrap_err().code(), Code::Unavailable);
    assert!(taken < DETECTED);
    let (failed, taken) = measured("known black hole", client.read()).await;
    assert_eq!(failed.unwrap_err().code(), Code::Unavailable);
    assert!(taken < AT_ONCE);
}

#[tokio::test]
async fn a_caller_may_start_before_its_callee() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let client = Client::of(address);
    let (failed, taken) = measured("not started", client.read()).await;
    assert_eq!(failed.unwrap_err().code(), Code::Unavailable);
    assert!(taken < AT_ONCE);

    let listener = TcpListener::bind(address).await.unwrap();
    let _program = Program::start_at("a", listener);
    assert!(back(&client).await < BACK);
}

#[tokio::test]
async fn calls_that_write_are_sent_once_and_calls_that_read_are_retried() {
    let program = Program::start("a").await;
    let wire = Wire::to(program.address).await.unwrap();
    let client = Client::of(wire.address());
    program.conduct.send_replace(Conduct::Refuses);
    assert_eq!(client.write().await.unwrap_err().code(), Code::Unavailable);
    assert_eq!(program.calls.writes(), 1);
    assert_eq!(client.read().await.unwrap_err().code(), Code::Unavailable);
    assert_eq!(program.calls.reads(), 3);

    // A callee that has waited itself is not called again.
    program.conduct.send_replace(Conduct::Works);
    let refusal = async {
        eventually("an open read", async || (program.calls.open() == 1).then_some(())).await;
        time::pause();
        time::advance(Duration::from_secs(1)).await;
        time::resume();
        program.conduct.send_replace(Conduct::Refuses);
    };
    let (failed, ()) = tokio::join!(client.read(), refusal);
    assert_eq!(failed.unwrap_err().code(), Code::Unavailable);
    assert_eq!(program.calls.reads(), 4);

    // Whether the callee performed the call is unknown.
    program.conduct.send_replace(Conduct::Works);
    let mut writing = pin!(client.write());
    eventually("an open call", || {
        assert!((&mut writing).now_or_never().is_none(), "the call is pending");
        async { (program.calls.writes() == 2).then_some(()) }
    })
    .await;
    wire.cut();
    assert_eq!(writing.await.unwrap_err().code(), Code::Unavailable);
    wire.restore();
    program.conduct.send_replace(Conduct::Answers);
    back(&client).await;
    assert_eq!(program.calls.writes(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_causes_few_retries() {
    const CALLS: usize = 3_000;
    let program = Program::start("a").await;
    let client = Client::of(program.address);
    program.conduct.send_replace(Conduct::Refuses);
    let calls = stream::iter(0..CALLS).map(|_| client.read()).buffer_unordered(300);
    let all_fail = calls.for_each(async |failed| {
        assert_eq!(failed.unwrap_err().code(), Code::Unavailable);
    });
    let ((), taken) = measured("the outage", all_fail).await;
    let more = program.calls.reads() - CALLS;
    println!("{CALLS} calls, sent {more} times more");
    // One retry per ten calls, and ten per second over windows of ten seconds.
    let windows = 1 + usize::try_from(taken.as_secs() / 10).unwrap();
    assert!((100..=CALLS / 10 + 100 * windows).contains(&more), "{more} of {CALLS}");
}

#[tokio::test]
async fn a_call_whose_deadline_has_passed_is_cancelled() {
    let program = Program::start("a").await;
    let client = Client::of(program.address);
    program.conduct.send_replace(Conduct::Works);
    let failed = client.read_within(Duration::from_millis(200)).await;
    assert_eq!(failed.unwrap_err().code(), Code::DeadlineExceeded);
    assert_eq!(program.calls.reads(), 1);
    eventually("no open call", || async { (program.calls.open() == 0).then_some(()) }).await;

    // Either side may be the first to notice the deadline.
    program.conduct.send_replace(Conduct::GivesUp);
    assert_eq!(client.read().await.unwrap_err().code(), Code::DeadlineExceeded);
}
