//! Logins under load.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use assay_testkit::Api;
use futures::future::join_all;

use crate::{
    people::{password_of, try_login, try_login_from},
    world::{ADMIN, PASSWORD, World},
};

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_concurrent_logins_do_not_delay_other_requests() {
    let world = World::start().await;
    world.api.get("/api/projects").await.ok();
    let (done, api) = (AtomicBool::new(false), world.anonymous());
    let logins = async {
        let answers = join_all((0..500).map(|_| try_login(&api, ADMIN, PASSWORD))).await;
        done.store(true, Ordering::Release);
        answers
    };
    let reads = async {
        let mut times = Vec::new();
        while !done.load(Ordering::Acquire) {
            let started = Instant::now();
            world.api.get("/api/projects").await.ok();
            times.push(started.elapsed());
        }
        times.sort_unstable();
        times
    };
    let (answers, times) = tokio::join!(logins, reads);
    let mut succeeded = 0;
    for answer in &answers {
        if answer.status == 200 {
            succeeded += 1;
        } else {
            answer.is_problem(429, "busy");
            assert!(answer.headers.contains_key("retry-after"), "{answer}");
        }
    }
    assert!(succeeded > 0, "no login succeeded");
    let (median, slowest) = (times[times.len() / 2], times[times.len() - 1]);
    assert!(median < Duration::from_millis(250), "{median:?} of {}", times.len());
    assert!(slowest < Duration::from_secs(3), "{slowest:?} of {}", times.len());
    try_login(&api, ADMIN, PASSWORD).await.ok();
    world.stop().await;
}

/// The time until each of two logins is rejected, one after the other, from new addresses.
async fn times(api: &Api, round: usize, emails: [&str; 2]) -> [Duration; 2] {
    let mut elapsed = [Duration::ZERO; 2];
    // The order alternates, so that a warm cache favours neither.
    for index in [round % 2, (round + 1) % 2] {
        let address = format!("10.{index}.{}.{}", round / 250, round % 250);
        let started = Instant::now();
        try_login_from(api, &address, emails[index], "a wrong guess").await.expect(401);
        elapsed[index] = started.elapsed();
    }
    elapsed
}

#[tokio::test(flavor = "multi_thread")]
async fn the_duration_of_a_login_does_not_reveal_whether_an_account_exists() {
    const ACCOUNTS: usize = 8;
    const ROUNDS: usize = 64;
    let world = World::start_with(|settings| {
        settings.edge.trusted_proxies = "127.0.0.0/8".parse().unwrap();
    })
    .await;
    let admin = world.act_for_new_customer("acme").await;
    for n in 0..ACCOUNTS {
        world.create_member(&admin, &format!("user{n}@example.org"), "Login").await;
    }
    let api = world.anonymous();
    try_login(&api, "user0@example.org", &password_of("user0@example.org")).await.ok();

    let mut known_was_slower = 0;
    let mut differences = Vec::new();
    for round in 0..ROUNDS {
        let known = format!("user{}@example.org", round % ACCOUNTS);
        let unknown = format!("none{round}@example.org");
        let [of_known, of_unknown] = times(&api, round, [&known, &unknown]).await;
        known_was_slower += usize::from(of_known > of_unknown);
        differences.push(of_known.as_secs_f64() - of_unknown.as_secs_f64());
    }
    // By chance alone, the count is outside this range in fewer than one of a million runs.
    let likely = ROUNDS / 2 - 20..=ROUNDS / 2 + 20;
    differences.sort_by(f64::total_cmp);
    let median = differences[ROUNDS / 2].abs();
    assert!(
        likely.contains(&known_was_slower) || median < 0.002,
        "known accounts were slower in {known_was_slower} of {ROUNDS} rounds, by {median} s"
    );
    world.stop().await;
}
