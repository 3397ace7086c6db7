//! Everything killed at once, under load.

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

/// How soon after a start everything has had its effect.
const SOON: Duration = Duration::from_secs(5);

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
                upload(&api, &set, report(40)).await.created();
                done.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    (clients, done)
}

/// Whether `assay verify` finds everything as the results say.
async fn is_clean(data: &Path) -> bool {
    let verified = command(data).arg("verify").output().await.unwrap();
    println!("{}", String::from_utf8_lossy(&verified.stdout).lines().next().unwrap_or_default());
    verified.status.success()
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_kill_under_load_everything_has_its_effect_within_seconds() {
    let data = data_dir();
    let mut program = Program::start(command(&data)).await;
    for _ in 0..3 {
        let api = program.log_in("ada@example.org", PASSWORD).await;
        let (clients, done) = load(&api).await;
        let busy = || async { (done.load(Ordering::Relaxed) >= 12).then_some(()) };
        eventually("uploads", busy).await;
        drop(clients);
        program.child.kill().await.unwrap();
        program = Program::start(command(&data)).await;
        let begun = Instant::now();
        while !is_clean(&data).await {
            assert!(begun.elapsed() < SOON, "not after {:?}", begun.elapsed());
        }
        println!("clean {:?} after the start", begun.elapsed());
    }
    assert!(program.terminate().await.success());
}
