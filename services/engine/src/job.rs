//! A job runs the instances of one lease, one after the other, and renews the lease meanwhile.

mod heartbeat;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use assay_client::ClientError;
use assay_proto::{
    TestResult,
    execution::{CompleteLeaseInput, InstanceResultInput, Lease},
};
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

use self::heartbeat::Heartbeat;
use crate::{
    api::{Api, is_loss, unreported},
    cache::Cache,
    command::Command,
    config::Config,
    download::Failure,
    files::Files,
    live_log::{ARTIFACT, LiveLog},
    outcome,
};

/// Time after the grace period to stop the command, and to return the work to the queue if Assay answers. With the
/// default grace period, the engine ends within 30 seconds, which orchestrators usually give it.
const LAST: Duration = Duration::from_secs(10);

pub(crate) struct Job {
    pub(crate) config: Arc<Config>,
    pub(crate) api: Api,
    /// None if no files are downloaded.
    pub(crate) cache: Option<Arc<Cache>>,
    /// Cancelled when the engine stops.
    pub(crate) stop: CancellationToken,
    pub(crate) lease: Lease,
    /// Time at which the lease was requested.
    pub(crate) requested: Instant,
}

/// Reason for ending a job early.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Interruption {
    /// The execution ended without the rest of the instances.
    Canceled,
    /// The lease expired or was revoked.
    LeaseLost,
    /// The lease could not be renewed, and would be lost soon.
    NotRenewed,
    /// The engine stops, and its grace period is over.
    Stopped,
}

impl Job {
    /// Runs all instances, then completes or releases the lease. An interruption stops the command
    /// first. An engine that stops does not wait long for Assay.
    pub(crate) async fn run(self) {
        let give_up = async {
            self.grace().await;
            sleep(LAST).await;
        };
        tokio::select! {
            () = self.run_to_end() => {}
            () = give_up => {
                tracing::warn!(lease.id = self.lease.id, "Assay does not answer; the lease is left to expire");
            }
        }
    }

    async fn run_to_end(&self) {
        let id = self.lease.id.clone();
        let (interrupted, interruption) = watch::channel(None);
        let log = LiveLog::new(self.api.clone(), id.clone(), self.config.live_log);
        let ended = tokio::select! {
            ended = self.instances(&log, interruption) => ended,
            () = log.send() => Ok(None),
            () = self.watch(&interrupted) => Ok(None),
        };
        log.flush().await;
        let reason = *interrupted.borrow();
        let finished = match (ended, reason) {
            (_, Some(Interruption::LeaseLost)) => {
                return tracing::warn!(lease.id = id, "lost the lease; its results are discarded");
            }
            (Err(error), _) if is_loss(&error) => {
                tracing::warn!(lease.id = id, %error, "the results are no longer accepted");
                // If the execution was canceled, its environment is free now. A lost lease has ended.
                let _ = self.complete(None).await;
                return;
            }
            (_, Some(Interruption::Stopped | Interruption::NotRenewed)) => {
                self.api.release(&id).await
            }
            (Err(error), _) => self.complete(Some(unreported(&error))).await,
            (Ok(failure), _) => self.complete(failure).await,
        };
        if let Err(error) = finished {
            tracing::warn!(lease.id = id, %error, "cannot complete or release the lease");
        }
    }

    async fn complete(&self, failure: Option<String>) -> Result<(), ClientError> {
        let completion = CompleteLeaseInput { engine_failure: failure.is_some(), comment: failure };
        self.api.complete(&self.lease.id, &completion).await
    }

    /// Prepares the files of the test, then runs and reports its instances. Returns the reason if the engine
    /// failed.
    async fn instances(
        &self,
        log: &LiveLog,
        mut interruption: watch::Receiver<Option<Interruption>>,
    ) -> Result<Option<String>, ClientError> {
        let prepared = tokio::select! {
            prepared = Files::prepare(&self.api, self.cache.as_deref(), &self.lease) => prepared,
            _ = interruption.wait_for(Option::is_some) => return Ok(None),
        };
        match prepared {
            Ok(files) => self.run_instances(&files, log, interruption).await,
            Err(Failure::Unavailable(problem)) => {
                self.report_unavailable(&problem, interruption).await
            }
            Err(Failure::Engine(error)) => Ok(Some(self.failure(&error))),
        }
    }

    /// Reports that no instance can run, because the test does not get its files.
    async fn report_unavailable(
        &self,
        problem: &str,
        mut interruption: watch::Receiver<Option<Interruption>>,
    ) -> Result<Option<String>, ClientError> {
        tracing::warn!(lease.id = self.lease.id, problem, "the test does not get its files");
        for nr in &self.lease.instance_numbers {
            let instance_nr = Some(*nr);
            let instance = InstanceResultInput { instance_nr, ..outcome::unavailable(problem) };
            self.report(instance, &mut interruption).await?;
        }
        Ok(None)
    }

    /// Reports an instance, unless the engine stops before Assay answers.
    async fn report(
        &self,
        instance: InstanceResultInput,
        interruption: &mut watch::Receiver<Option<Interruption>>,
    ) -> Result<(), ClientError> {
        tokio::select! {
            reported = self.api.report(&self.lease.id, instance) => reported,
            _ = interruption.wait_for(|reason| *reason == Some(Interruption::Stopped)) => Ok(()),
        }
    }

    /// Logs the failure of the engine, and returns it as text.
    fn failure(&self, error: &anyhow::Error) -> String {
        let reason = format!("{error:#}");
        tracing::error!(lease.id = self.lease.id, error = reason, "cannot run the test");
        reason
    }

    /// Runs and reports one instance after the other. Returns the reason if the engine failed.
    async fn run_instances(
        &self,
        files: &Files,
        log: &LiveLog,
        mut interruption: watch::Receiver<Option<Interruption>>,
    ) -> Result<Option<String>, ClientError> {
        for nr in &self.lease.instance_numbers {
            if interruption.borrow().is_some() {
                return Ok(None);
            }
            match self.instance(*nr, files, log, &mut interruption).await {
                Ok(Some(mut instance)) => {
                    if log.flush().await {
                        let uri = &mut instance.execution_log_uri;
                        uri.get_or_insert_with(|| ARTIFACT.to_owned());
                    }
                    self.report(instance, &mut interruption).await?;
                }
                Ok(None) => return Ok(None),
                Err(error) => return Ok(Some(self.failure(&error))),
            }
        }
        Ok(None)
    }

    /// Runs the command for one instance. Repeats it while it passes, until the minimum duration of
    /// the plan is over. Stops it at the maximum duration. Returns the result of the last run with
    /// the duration of all runs, or `None` if the job was interrupted.
    async fn instance(
        &self,
        nr: i32,
        files: &Files,
        log: &LiveLog,
        interruption: &mut watch::Receiver<Option<Interruption>>,
    ) -> anyhow::Result<Option<InstanceResultInput>> {
        let minimum = minutes(self.lease.minimum_duration_in_min);
        // An Assay that is older than the engine states no maximum.
        let maximum = minutes(self.lease.maximum_duration_in_min);
        let maximum = if maximum.is_zero() { Duration::MAX } else { maximum };
        let (begun, mut started, mut runs) = (Instant::now(), None, 0);
        loop {
            let command = Command::new(&self.config.command, &self.lease, files, nr);
            let interrupted = async {
                // The sender outlives this, so the wait ends only with an interruption.
                let _ = interruption.wait_for(Option::is_some).await;
            };
            let rest = maximum.saturating_sub(begun.elapsed());
            let write = |output: &[u8]| log.write(output);
            let Some(instance) = command.run(rest, write, interrupted).await? else {
                return Ok(None);
            };
            runs += 1;
            let started = *started.get_or_insert(instance.start_date_time);
            if instance.result() == TestResult::Passed && begun.elapsed() < minimum {
                continue;
            }
            if runs == 1 {
                return Ok(Some(instance));
            }
            return Ok(Some(InstanceResultInput {
                start_date_time: started,
                finish_date_time: None,
                duration_in_sec: Some(begun.elapsed().as_secs_f64()),
                ..instance
            }));
        }
    }

    /// Renews the lease and announces an interruption. Never returns.
    async fn watch(&self, interrupted: &watch::Sender<Option<Interruption>>) {
        let interrupt = |reason| {
            tracing::info!(lease.id = self.lease.id, ?reason, "stopping the test");
            interrupted.send_replace(Some(reason));
        };
        let interval = self.config.heartbeat_seconds;
        let heartbeat = Heartbeat { api: &self.api, lease: &self.lease.id, interval };
        tokio::select! {
            reason = heartbeat.run(self.requested) => interrupt(reason),
            () = self.grace() => interrupt(Interruption::Stopped),
        }
        std::future::pending::<()>().await;
    }

    /// Waits until the engine stops and the grace period is over.
    async fn grace(&self) {
        self.stop.cancelled().await;
        sleep(Duration::from_secs(self.config.grace_seconds.into())).await;
    }
}

fn minutes(minutes: f64) -> Duration {
    Duration::try_from_secs_f64(minutes * 60.0).unwrap_or_default()
}
