//! Sends the output of a test to Assay while it runs.

use std::{
    future::pending,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use assay_proto::execution::LiveLogInput;
use tokio::time::{sleep, timeout};

use crate::{api::Api, command::MAX_OUTPUT};

/// Name of the artifact that the log becomes.
pub(crate) const ARTIFACT: &str = "live.log";

/// Interval between requests.
const INTERVAL: Duration = Duration::from_secs(1);

/// Maximum number of bytes of one request. Bytes that are not UTF-8 take up to three times as many.
const LARGEST_PART: usize = 16 << 10;

/// Maximum number of bytes that wait. A test that writes more than the network takes loses some.
const MOST_WAITING: usize = 1 << 20;

/// Time limit for sending the rest.
const FLUSH: Duration = Duration::from_secs(5);

/// The log of a lease.
pub(crate) struct LiveLog {
    api: Api,
    lease: String,
    waiting: Mutex<Waiting>,
    /// Locked while a request is sent.
    sent: tokio::sync::Mutex<Sent>,
    /// Whether Assay has a part of the log.
    is_begun: AtomicBool,
}

/// Output that was not sent yet.
#[derive(Default)]
struct Waiting {
    bytes: Vec<u8>,
    /// Number of bytes that had no room.
    left_out: usize,
}

#[derive(Default)]
struct Sent {
    /// Size of the log at Assay, in bytes.
    size: i64,
    /// Whether Assay takes no more.
    is_over: bool,
}

impl LiveLog {
    /// Creates an empty log of a lease. If it is not enabled, nothing is sent.
    pub(crate) fn new(api: Api, lease: String, is_enabled: bool) -> Self {
        let sent = Sent { size: 0, is_over: !is_enabled };
        let (waiting, sent) = (Mutex::default(), tokio::sync::Mutex::new(sent));
        Self { api, lease, waiting, sent, is_begun: AtomicBool::default() }
    }

    /// Adds output, which is sent soon.
    pub(crate) fn write(&self, output: &[u8]) {
        let mut waiting = self.waiting();
        let room = MOST_WAITING.saturating_sub(waiting.bytes.len());
        let (kept, rest) = output.split_at(output.len().min(room));
        waiting.bytes.extend_from_slice(kept);
        waiting.left_out += rest.len();
    }

    /// Sends output every second. Never returns.
    pub(crate) async fn send(&self) {
        loop {
            sleep(INTERVAL).await;
            self.send_waiting(false).await;
            if self.sent.lock().await.is_over {
                *self.waiting() = Waiting::default();
                pending::<()>().await;
            }
        }
    }

    /// Sends the rest of the output. Returns whether Assay has a log: a test that was soon over has
    /// none, since its result has the end of its output. A server that does not answer delays the result for
    /// a limited time only.
    pub(crate) async fn flush(&self) -> bool {
        let rest = async {
            let is_short = self.waiting().bytes.len() <= MAX_OUTPUT;
            if !is_short || self.sent.lock().await.size > 0 {
                self.send_waiting(true).await;
            }
        };
        let _ = timeout(FLUSH, rest).await;
        self.is_begun.load(Ordering::Relaxed)
    }

    async fn send_waiting(&self, is_end: bool) {
        let mut sent = self.sent.lock().await;
        while !sent.is_over {
            let (length, text) = self.waiting().part(is_end);
            if length == 0 {
                return;
            }
            // The offset lets Assay recognize a part that it has although its answer was lost.
            let part = LiveLogInput { text, offset: Some(sent.size) };
            match self.api.append(&self.lease, &part).await {
                Ok(state) => {
                    self.waiting().remove(length);
                    self.is_begun.fetch_or(state.size > 0, Ordering::Relaxed);
                    (sent.size, sent.is_over) = (state.size, state.is_full);
                }
                Err(error) if error.is_permanent() => {
                    tracing::warn!(lease.id = self.lease, %error, "the live log ends here");
                    sent.is_over = true;
                }
                Err(error) => {
                    return tracing::debug!(lease.id = self.lease, %error, "cannot send the live log; will retry");
                }
            }
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    /// Returns the next part as text, and its length in bytes. A character that is cut off waits for
    /// its rest, unless the output ends.
    fn part(&self, is_end: bool) -> (usize, String) {
        let part = &self.bytes[..self.bytes.len().min(LARGEST_PART)];
        let length = match std::str::from_utf8(part) {
            Err(error) if error.error_len().is_none() && !is_end => error.valid_up_to(),
            _ => part.len(),
        };
        (length, String::from_utf8_lossy(&part[..length]).replace('\0', "\u{fffd}"))
    }

    /// Removes a part that was sent. Says how much was left out once there is room again.
    fn remove(&mut self, length: usize) {
        self.bytes.drain(..length);
        if self.left_out > 0 && self.bytes.is_empty() {
            let note = format!("\n[{} bytes were left out]\n", self.left_out);
            (self.bytes, self.left_out) = (note.into_bytes(), 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::{net::TcpListener, time::Instant};

    use super::*;
    use crate::config::Config;

    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_answer_delays_a_result_for_a_limited_time() {
        let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", silent.local_addr().unwrap());
        let config = Config::of(&["--url", &url, "--", "true"]).unwrap();
        let log = LiveLog::new(Api::new(&config).unwrap(), "lease".to_owned(), true);
        log.write(&vec![b'x'; 2 * MAX_OUTPUT]);
        let begun = Instant::now();
        tokio::select! {
            biased;
            () = log.send_waiting(false) => panic!("a request ended"),
            is_begun = log.flush() => assert!(!is_begun),
        }
        assert!(begun.elapsed() < 2 * FLUSH);
    }

    #[test]
    fn parts_end_between_characters() {
        let mut waiting = Waiting { bytes: "a€".as_bytes()[..3].to_vec(), left_out: 0 };
        assert_eq!(waiting.part(false), (1, "a".to_owned()));
        waiting.remove(1);
        assert_eq!(waiting.part(false), (0, String::new()));
        assert_eq!(waiting.part(true), (2, "\u{fffd}".to_owned()));
    }

    #[test]
    fn a_part_that_was_cut_in_a_character_is_sent_from_there() {
        let text = "x".repeat(LARGEST_PART - 1) + "€";
        let mut waiting = Waiting { bytes: text.into_bytes(), left_out: 7 };
        assert_eq!(waiting.part(false).0, LARGEST_PART - 1);
        waiting.remove(LARGEST_PART - 1);
        assert_eq!(waiting.part(false), (3, "€".to_owned()));
        waiting.remove(3);
        assert_eq!(waiting.part(false).1, "\n[7 bytes were left out]\n");
    }
}
