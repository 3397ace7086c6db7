//! Tests with real private servers.

mod data_dir;
mod nats;
mod postgres;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use assay_servers::DataDir;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use tempfile::TempDir;

/// Creates a directory that every account can enter.
fn reachable_dir() -> TempDir {
    tempfile::Builder::new()
        .prefix("assay-servers-")
        .permissions(Permissions::from_mode(0o755))
        .tempdir()
        .expect("a temporary directory")
}

fn lock(dir: &TempDir) -> DataDir {
    DataDir::lock(dir.path()).expect("the directory is not locked")
}

fn process(pid: u32) -> Pid {
    Pid::from_raw(pid.cast_signed()).expect("the id of a process")
}

fn is_alive(pid: u32) -> bool {
    test_kill_process(process(pid)).is_ok()
}

fn kill(pid: u32) {
    kill_process(process(pid), Signal::KILL).expect("the process exists");
}
