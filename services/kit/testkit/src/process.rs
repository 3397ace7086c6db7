//! Processes by their ids.

use std::time::Duration;

pub use rustix::process::Signal;
use rustix::process::{Pid, kill_process, test_kill_process};
use tokio::time::interval;

/// Interval of polls for the end of a process.
const POLL: Duration = Duration::from_millis(50);

/// Sends a signal to a process, which may be a child of this one, but has not been waited for.
///
/// # Panics
///
/// If the process does not exist.
pub fn signal(process: u32, signal: Signal) {
    kill_process(pid(process), signal).expect("a process to signal");
}

/// Waits until a process has ended.
pub async fn ended(process: u32) {
    let mut tick = interval(POLL);
    while test_kill_process(pid(process)).is_ok() {
        tick.tick().await;
    }
}

fn pid(process: u32) -> Pid {
    i32::try_from(process).ok().and_then(Pid::from_raw).expect("the id of a process")
}
