//! Processes that are not children of this one.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use tokio::time::interval;

/// Interval of polls for the end of a process.
const POLL: Duration = Duration::from_millis(50);

/// Kills a process.
pub(crate) fn kill(process: u32) {
    kill_process(pid(process), Signal::KILL).expect("a process to kill");
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
