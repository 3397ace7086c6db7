//! Calls to a program that is not there, or not well.

use std::{pin::pin, time::Duration};

use assay_testkit::{Wire, black_hole, eventually};
use futures::{FutureExt, StreamExt, future::join_all, stream};
use tokio::net::TcpListener;
use tonic::Code;

use crate::world::{Client, Conduct, Program, measured};

/// Until somebody is told that a program is not available, at worst.
const TOLD: Duration = Duration::from_secs(3);

/// Until that is known from others.
const AT_ONCE: Duration = Duration::from_millis(400);

/// Until a program that is back is called again.
const BACK: Duration = Duration::from_secs(1);

async fn back(client: &Client) -> Duration {
    let answered = eventually("an answer", || client.read().map(Result::ok));
    measured("back", answered).await.1
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_was_killed_is_missed_at_once_and_so_is_its_return_noticed() {
    let program = Program::start("a").await;
    let wire = Wire::to(program.address).await.unwrap();
    let client = Client::of(wire.address());
    assert_eq!(client.read().await.unwrap(), "a");

    wire.cut();
    eventually("a failure", || client.write().map(Result::err)).await;
    let (failed, taken) = measured("killed", client.read()).await;
    assert_eq!(failed.unwrap_err().code(), Code::Unavailable);
    assert!(taken < AT_ONCE);

    wire.mend();
    assert!(back(&client).await < BACK);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_hangs_is_found_out_and_works_as_soon_as_it_goes_on() {
    let program = Program::start("a").await;
    let wire = Wire::to(program.address).await.unwrap();
    let client = Client::of(wire.address());
    program.conduct.send_replace(Conduct::Works);
    let in_flight = [client.read().boxed(), client.write().boxed()];
    let (failed, taken) = measured("frozen", async {
        let mut in_flight = pin!(join_all(in_flight));
        eventually("calls at work", || {
            let waits = (&mut in_flight).now_or_never().is_none();
            assert!(waits, "they wait");
            async { (program.asked.open() == 2).then_some(()) }
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
    assert!(taken < TOLD, "{taken:?}");
    for _ in 0..20 {
        let (failed, taken) = measured("known to be frozen", client.write()).await;
        assert_eq!(failed.unwrap_err().code(), Code::Unavailable);
        assert!(taken < AT_ONCE, "{taken:?}");
    }

    program.conduct.send_replace(Conduct::Answers);
    wire.mend();
    assert!(back(&client).await < BACK);
    assert_eq!(program.asked.writes(), 1, "what was refused is not sent afterwards");
}

#[tokio::test]
async fn an_address_to_which_nothing_gets_through_keeps_nobody_waiting() {
    let (address, _kept) = black_hole().await.unwrap();
    let client = Client::of(address);
    let (failed, taken) = measured("black hole", client.read()).await;
    assert_eq!(failed.unwrap_err().code(), Code::Unavailable);
    assert!(taken < TOLD);
    let (failed, taken) = measured("known black hole", client.read()).await;
    assert_eq!(failed.unwrap_err().code(), Code::Unavailable);
    assert!(taken < AT_ONCE);
}

#[tokio::test]
async fn who_calls_may_start_before_those_who_answer() {
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
async fn what_changes_something_is_sent_once_and_what_reads_again() {
    let program = Program::start("a").await;
    let wire = Wire::to(program.address).await.unwrap();
    let client = Client::of(wire.address());
    program.conduct.send_replace(Conduct::Refuses);
    assert_eq!(client.write().await.unwrap_err().code(), Code::Unavailable);
    assert_eq!(program.asked.writes(), 1);
    assert_eq!(client.read().await.unwrap_err().code(), Code::Unavailable);
    assert_eq!(program.asked.reads(), 3);

    // Who has waited for something itself is not asked to do so again.
    program.conduct.send_replace(Conduct::RefusesLate);
    assert_eq!(client.read().await.unwrap_err().code(), Code::Unavailable);
    assert_eq!(program.asked.reads(), 4);

    // Nobody knows whether it was done.
    program.conduct.send_replace(Conduct::Works);
    let mut writing = pin!(client.write());
    eventually("a call at work", || {
        assert!((&mut writing).now_or_never().is_none(), "it waits");
        async { (program.asked.writes() == 2).then_some(()) }
    })
    .await;
    wire.cut();
    assert_eq!(writing.await.unwrap_err().code(), Code::Unavailable);
    wire.mend();
    program.conduct.send_replace(Conduct::Answers);
    back(&client).await;
    assert_eq!(program.asked.writes(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn in_an_outage_a_program_is_asked_hardly_more_than_before() {
    const CALLS: usize = 3_000;
    let program = Program::start("a").await;
    let client = Client::of(program.address);
    program.conduct.send_replace(Conduct::Refuses);
    let calls = stream::iter(0..CALLS).map(|_| client.read()).buffer_unordered(300);
    let all_fail = calls.for_each(async |failed| {
        assert_eq!(failed.unwrap_err().code(), Code::Unavailable);
    });
    let ((), taken) = measured("the outage", all_fail).await;
    let more = program.asked.reads() - CALLS;
    println!("{CALLS} calls, sent {more} times more");
    // One in ten, and ten a second over windows of ten seconds.
    let windows = 1 + usize::try_from(taken.as_secs() / 10).unwrap();
    assert!((100..=CALLS / 10 + 100 * windows).contains(&more), "{more} of {CALLS}");
}

#[tokio::test]
async fn nobody_works_on_a_call_whose_caller_has_given_up() {
    let program = Program::start("a").await;
    let client = Client::of(program.address);
    program.conduct.send_replace(Conduct::Works);
    let failed = client.read_within(Duration::from_millis(200)).await;
    assert_eq!(failed.unwrap_err().code(), Code::DeadlineExceeded);
    assert_eq!(program.asked.reads(), 1);
    eventually("nobody at work", || async { (program.asked.open() == 0).then_some(()) }).await;

    // Whoever of the two is the first to look at the clock.
    program.conduct.send_replace(Conduct::GivesUp);
    assert_eq!(client.read().await.unwrap_err().code(), Code::DeadlineExceeded);
}
