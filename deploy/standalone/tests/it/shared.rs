//! One Assay for all stories of a test run that need only a customer.
//!
//! The first of them starts it in a process of its own, which ends with the run.

use std::{
    env,
    fs::{self, File},
    os::unix::process::parent_id,
    path::{Path, PathBuf},
    process::Stdio,
};

use assay_testkit::{Api, ended, eventually, test_dir};
use tokio::process::Command;

use crate::{installation::Installation, world::World};

/// Environment variable with the process id of the test run.
const RUN: &str = "ASSAY_TEST_RUN";

/// File with the URL and the administrator's token. It exists when the shared Assay is ready.
const ACCESS: &str = "access";

/// The output of the shared Assay.
const LOG: &str = "shared.log";

impl Installation {
    /// Returns the shared Assay, and starts it for the first story of the run.
    ///
    /// Stories run at the same time, so each creates its own customers, with unique subdomains and
    /// emails, and leaves the operator's administrator as it is.
    pub(crate) async fn shared() -> Self {
        let run = parent_id();
        let dir = dir_of(run);
        // Only one story creates the directory.
        if fs::create_dir(&dir).is_ok() {
            start(run, &dir);
        }
        let access = eventually("the shared Assay", || async {
            let log = fs::read_to_string(dir.join(LOG)).unwrap_or_default();
            assert!(!log.contains("panicked"), "the shared Assay has failed:\n{log}");
            fs::read_to_string(dir.join(ACCESS)).ok()
        })
        .await;
        let (url, token) = access.split_once('\n').unwrap();
        Self::new(url.to_owned(), Api::new(url).with_token(token), dir.join("mail"))
    }
}

/// The data directory of a run's shared Assay.
fn dir_of(run: u32) -> PathBuf {
    test_dir().unwrap().join(format!("shared-{run}"))
}

/// Starts [`serve_until_the_run_ends`] in a process that survives this one.
fn start(run: u32, dir: &Path) {
    let log = File::create(dir.join(LOG)).unwrap();
    Command::new(env::current_exe().unwrap())
        .args(["--exact", "shared::serve_until_the_run_ends", "--ignored", "--nocapture"])
        .env(RUN, run.to_string())
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .process_group(0)
        .spawn()
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "stories start it"]
async fn serve_until_the_run_ends() {
    let run = env::var_os(RUN).expect("the first story sets it");
    let run = run.to_str().unwrap().parse().unwrap();
    let dir = dir_of(run);
    let world = World::start_in(&dir, |_| {}).await;
    let draft = dir.join("draft");
    fs::write(&draft, format!("{}\n{}", world.url(), world.api.token())).unwrap();
    fs::rename(draft, dir.join(ACCESS)).unwrap();
    tokio::select! {
        () = world.stopped() => {}
        // The databases end at the same time, so that Assay cannot finish its work.
        () = ended(run) => return,
    }
    world.stop().await;
    panic!("a program stopped by itself");
}
