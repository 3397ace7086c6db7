//! Load: closed loops for throughput, open loops for latency.

use std::{
    net::SocketAddr,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use futures::future::try_join_all;
use tokio::sync::Semaphore;

use crate::client::{Connection, Counted, Prepared};

/// A kind of request, and the response that it gets.
pub(crate) struct Job<'a> {
    /// Returns the request with a number, from 0.
    pub(crate) request: &'a dyn Fn(u64) -> Prepared,
    pub(crate) status: u16,
    /// Number of bytes that each response has.
    pub(crate) length: Range<usize>,
}

impl Job<'_> {
    /// Returns an error for a response that is not the expected one.
    pub(crate) fn check(&self, response: &Counted) -> Result<()> {
        let Counted { status, length, .. } = response;
        if status.as_u16() != self.status || !self.length.contains(length) {
            let (expected, lengths) = (self.status, &self.length);
            bail!("status {status} with {length} bytes instead of {expected} with {lengths:?}");
        }
        Ok(())
    }
}

/// The outcome of a load.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) seconds: f64,
    /// Latencies of all requests, in microseconds, in ascending order.
    latencies: Vec<u32>,
}

impl Outcome {
    pub(crate) fn new(seconds: f64, mut latencies: Vec<u32>) -> Self {
        latencies.sort_unstable();
        Self { seconds, latencies }
    }

    pub(crate) fn count(&self) -> usize {
        self.latencies.len()
    }

    pub(crate) fn per_second(&self) -> f64 {
        self.count() as f64 / self.seconds
    }

    /// Returns a percentile of the latencies, in milliseconds.
    pub(crate) fn percentile(&self, percent: usize) -> f64 {
        let last = self.count().saturating_sub(1);
        let at = (self.count() * percent / 100).min(last);
        self.latencies.get(at).map_or(f64::NAN, |micros| f64::from(*micros) / 1000.0)
    }
}

pub(crate) fn micros(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}

/// The connections of a load. They are spread over the gateways, and stay open.
pub(crate) struct Connections {
    open: Vec<Connection>,
    /// Number of the next request, so that no two requests of a job are the same.
    next: AtomicU64,
}

impl Connections {
    pub(crate) async fn open(gateways: &[SocketAddr], count: usize) -> Result<Self> {
        let addresses = gateways.iter().cycle().take(count);
        let open = try_join_all(addresses.map(|address| Connection::open(*address))).await?;
        Ok(Self { open, next: AtomicU64::new(0) })
    }

    fn request(&self, job: &Job<'_>) -> Prepared {
        (job.request)(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Sends that many requests.
    pub(crate) async fn send(&mut self, job: &Job<'_>, count: usize) -> Result<()> {
        let mut open = std::mem::take(&mut self.open);
        let loops = open.iter_mut().map(async |connection| {
            loop {
                let number = self.next.fetch_add(1, Ordering::Relaxed);
                if number >= count as u64 {
                    return anyhow::Ok(());
                }
                job.check(&connection.count((job.request)(number)).await?)?;
            }
        });
        try_join_all(loops).await?;
        self.open = open;
        Ok(())
    }

    /// Sends the next request on each of the first connections as soon as its last response is there.
    pub(crate) async fn closed_loop(
        &mut self,
        job: &Job<'_>,
        connections: usize,
        time: Duration,
    ) -> Result<Outcome> {
        let began = Instant::now();
        let mut open = std::mem::take(&mut self.open);
        let loops = open.iter_mut().take(connections).map(async |connection| {
            let mut latencies = Vec::new();
            while began.elapsed() < time {
                let sent = Instant::now();
                job.check(&connection.count(self.request(job)).await?)?;
                latencies.push(micros(sent.elapsed()));
            }
            anyhow::Ok(latencies)
        });
        let latencies = try_join_all(loops).await?.concat();
        let seconds = began.elapsed().as_secs_f64();
        self.open = open;
        Ok(Outcome::new(seconds, latencies))
    }

    /// Sends requests at a constant rate. The latency of each is measured from the time at which it
    /// was due, so that a stall counts for all requests that wait behind it.
    pub(crate) async fn open_loop(
        &mut self,
        job: &Job<'_>,
        rate: f64,
        time: Duration,
    ) -> Result<Outcome> {
        let interval = Duration::from_secs_f64(1.0 / rate);
        let count = whole(time, interval).max(1);
        let (due, taken) = (Arc::new(Semaphore::new(0)), AtomicU32::new(0));
        let began = Instant::now();
        let pacer = pacer(began, interval, count, due.clone());
        let mut open = std::mem::take(&mut self.open);
        let loops = open.iter_mut().map(async |connection| {
            let mut latencies = Vec::new();
            // The pacer closes the semaphore when all requests have been sent.
            while let Ok(permit) = due.acquire().await {
                permit.forget();
                let number = taken.fetch_add(1, Ordering::Relaxed) + 1;
                let scheduled = began + interval * number;
                job.check(&connection.count(self.request(job)).await?)?;
                latencies.push(micros(scheduled.elapsed()));
                if number >= count {
                    due.close();
                }
            }
            anyhow::Ok(latencies)
        });
        let latencies = try_join_all(loops).await?.concat();
        let seconds = began.elapsed().as_secs_f64();
        self.open = open;
        drop(pacer.join());
        Ok(Outcome::new(seconds, latencies))
    }
}

/// Returns how often an interval fits into a time.
fn whole(time: Duration, interval: Duration) -> u32 {
    u32::try_from(time.as_nanos() / interval.as_nanos().max(1)).unwrap_or(u32::MAX)
}

/// Starts a thread that adds a permit whenever a request is due. A timer of the system is more
/// precise than one of tokio, which counts milliseconds.
fn pacer(
    began: Instant,
    interval: Duration,
    count: u32,
    due: Arc<Semaphore>,
) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        let mut sent = 0;
        while sent < count {
            let next = began + interval * (sent + 1);
            thread::sleep(next.saturating_duration_since(Instant::now()));
            let now_due = whole(began.elapsed(), interval).min(count);
            due.add_permits((now_due.saturating_sub(sent)) as usize);
            sent = sent.max(now_due);
        }
    })
}
