//! All processes killed at once under load.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use assay_testkit::{Api, eventually};
use serde_json::json;
use tokio::task::JoinSet;

use crate::{
    junit::{report, upload},
    process::{PASSWORD, Program, command, data_dir},
    world::id,
};

/// Maximum time after a start until all events have taken effect.
const SETTLES_WITHIN: Duration = Duration::from_secs(5);

/// Clients that upload reports, each to a test set of its own.
const CLIENTS: usize = 4;

/// Uploads reports until dropped.
async fn load(api: &Api) -> (JoinSet<()>, Arc<AtomicUsize>) {
    let (mut clients, done) = (JoinSet::new(), Arc::<AtomicUsize>::default());
    let project = api.post("/api/projects", json!({"Name": "Busy"})).await.created();
    let project = format!("/api/projects/{}", id(&project));
    for _ in 0..CLIENTS {
        let set = api.post(&format!("{project}/testsets"), json!({"Name": "All"})).await.created();
        let set = format!("{project}/testsets/{}", id(&set));
        let (api, done) = (api.clone(), done.clone());
        clients.spawn(async move {
            loop {
                upload(&api, &set, report(20)).await.created();
                done.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    (clients, done)
}

/// Whether `assay verify` finds no differences.
async fn has_no_differences(data: &Path) -> bool {
    let verified = command(data).arg("verify").output().await.unwrap();
    println!("{}", String::from_utf8_lossy(&verified.stdout).lines().next().unwrap_or_default());
    verified.status.success()
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_kill_under_load_all_events_take_effect_within_seconds() {
    let data = data_dir();
    let mut program = Program::start(command(&data)).await;
    for _ in 0..3 {
        let api = program.log_in("ada@example.org", PASSWORD).await;
        let (clients, done) = load(&api).await;
        let busy = || async { (done.load(Ordering::Relaxed) >= 12).then_some(()) };
        eventually("a number of uploads", busy).await;
        drop(clients);
        program.child.kill().await.unwrap();
        program = Program::start(command(&data)).await;
        let started = Instant::now();
        while !has_no_differences(&data).await {
            assert!(
                started.elapsed() < SETTLES_WITHIN,
                "differences after {:?}",
                started.elapsed()
            );
        }
        println!("no differences {:?} after the start", started.elapsed());
    }
    assert!(program.terminate().await.success());
}
