//! Logins under load.

use std::sync::atomic::{AtomicBool, Ordering};

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
        let mut answered = 0;
        while !done.load(Ordering::Acquire) {
            world.api.get("/api/projects").await.ok();
            answered += 1;
        }
        answered
    };
    let (answers, answered) = tokio::join!(logins, reads);
    let mut succeeded = 0;
    for answer in &answers {
        if answer.status == 200 {
            succeeded += 1;
            continue;
        }
        // The queue of passwords is full, or the processors are overloaded by these clients.
        let (status, code) = if answer.status == 429 { (429, "busy") } else { (503, "overloaded") };
        answer.is_problem(status, code);
        assert!(answer.headers.contains_key("retry-after"), "{answer}");
    }
    assert!(succeeded > 0, "no login succeeded");
    // Logins that were answered take two seconds of two processors, and longer ones on slower machines.
    assert!(answered >= 10, "only {answered} other requests were answered meanwhile");
    try_login(&api, ADMIN, PASSWORD).await.ok();
    world.stop().await;
}
