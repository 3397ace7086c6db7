//! Logins under load.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use futures::future::join_all;

use crate::{
    people::try_login,
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
