//! A job runs the instances of one lease, one after the other, and renews the lease meanwhile.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use assay_client::ClientError;
use assay_proto::{
    TestResult,
    execution::{CompleteLeaseInput, InstanceResultInput, Lease},
};
use tokio::{
    sync::watch,
    time::{sleep, sleep_until},
};
use tokio_util::sync::CancellationToken;

use crate::{
    api::{Api, is_loss},
    cache::Cache,
    command::Command,
    config::Config,
    download::Failure,
    files::Files,
    live_log::{ARTIFACT, LiveLog},
    outcome,
};

/// Maximum time that a heartbeat may wait, in seconds.
const LONGEST_WAIT: u16 = 30;

pub(crate) struct Job {
    pub(crate) config: Arc<Config>,
    pub(crate) api: Api,
    /// None if no files are downloaded.
    pub(crate) cache: Option<Arc<Cache>>,
    /// Cancelled when the engine stops.
    pub(crate) stop: CancellationToken,
    pub(crate) lease: Lease,
}

/// Reason for ending a job early.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Interruption {
    /// The execution ended without the rest of the instances.
    Canceled,
    /// The lease expired or was revoked.
    LeaseLost,
    /// The engine stops, and its grace period is over.
    Stopped,
}

impl Job {
    /// Runs all instances, then completes or releases the lease. An interruption stops the command
    /// first.
    pub(crate) async fn run(self) {
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
            (_, Some(Interruption::Stopped)) => self.api.release(&id).await,
            (Err(error), _) => {
                self.complete(Some(format!("Assay rejected the result: {error}"))).await
            }
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
            Err(Failure::Unavailable(problem)) => self.report_unavailable(&problem).await,
            Err(Failure::Engine(error)) => Ok(Some(self.failure(&error))),
        }
    }

    /// Reports that no instance can run, because the test does not get its files.
    async fn report_unavailable(&self, problem: &str) -> Result<Option<String>, ClientError> {
        tracing::warn!(lease.id = self.lease.id, problem, "the test does not get its files");
        for nr in &self.lease.instance_numbers {
            let instance_nr = Some(*nr);
            let instance = InstanceResultInput { instance_nr, ..outcome::unavailable(problem) };
            self.api.report(&self.lease.id, instance).await?;
        }
        Ok(None)
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
            match self.instance(*nr, files, log, &mut interruption).await {
                Ok(Some(mut instance)) => {
                    if log.flush().await {
                        let uri = &mut instance.execution_log_uri;
                        uri.get_or_insert_with(|| ARTIFACT.to_owned());
                    }
                    self.api.report(&self.lease.id, instance).await?;
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
        tokio::select! {
            reason = self.heartbeat() => interrupt(reason),
            () = self.grace() => interrupt(Interruption::Stopped),
        }
        std::future::pending::<()>().await;
    }

    /// Renews the lease until it ends, and returns the reason.
    async fn heartbeat(&self) -> Interruption {
        let interval = self.config.heartbeat_seconds;
        let wait = interval.min(LONGEST_WAIT);
        loop {
            let next = Instant::now() + Duration::from_secs(interval.into());
            // A heartbeat that does not wait is followed by a pause.
            match self.api.renew(&self.lease.id, wait).await {
                Ok(state) if !state.r#continue => return Interruption::Canceled,
                Ok(_) => {}
                Err(error) if is_loss(&error) => return Interruption::LeaseLost,
                Err(error) => {
                    tracing::warn!(lease.id = self.lease.id, %error, "cannot renew the lease; will retry");
                }
            }
            sleep_until(next.into()).await;
        }
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

#[cfg(test)]
mod tests {
    use assay_proto::TestType;

    use super::*;

    fn job(command: &str, minimum_duration_in_min: f64) -> Job {
        let config = Config::of(&["--", "sh", "-c", command]).unwrap();
        let mut lease = Lease { minimum_duration_in_min, ..Lease::default() };
        lease.set_test_type(TestType::Stability);
        let (api, stop) = (Api::new(&config).unwrap(), CancellationToken::new());
        let cache = Cache::open(&config).unwrap().map(Arc::new);
        Job { config: Arc::new(config), api, cache, stop, lease }
    }

    fn log() -> LiveLog {
        LiveLog::new(job("", 0.0).api, String::new(), false)
    }

    #[tokio::test]
    async fn a_passing_test_is_repeated_for_its_minimum_duration() {
        let (_sender, mut interruption) = watch::channel(None);
        let once = job("exit 0", 0.0)
            .instance(1, &Files::default(), &log(), &mut interruption)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(once.result(), TestResult::Passed);

        let minimum = 0.01;
        let long = job("exit 0", minimum)
            .instance(1, &Files::default(), &log(), &mut interruption)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(long.result(), TestResult::Passed);
        assert!(long.duration_in_sec.unwrap() >= minimum * 60.0, "{long:?}");
        assert!(long.start_date_time.is_some());

        let failed = job("exit 1", 60.0)
            .instance(1, &Files::default(), &log(), &mut interruption)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(failed.result(), TestResult::Failed, "a failure is not repeated");
    }

    #[tokio::test]
    async fn a_test_that_takes_too_long_is_stopped_with_its_children_and_keeps_its_output() {
        let (_sender, mut interruption) = watch::channel(None);
        let dir = tempfile::tempdir().unwrap();
        let child = dir.path().join("child");
        let script = format!(
            "echo begun; sh -c 'trap \"\" TERM; echo $$ >{0}.new; mv {0}.new {0}; while :; do sleep 1; done' & wait",
            child.display()
        );
        let mut job = job(&script, 0.0);
        job.lease.maximum_duration_in_min = 0.01;

        let late =
            job.instance(1, &Files::default(), &log(), &mut interruption).await.unwrap().unwrap();

        assert_eq!(late.result(), TestResult::Error);
        let text = late.steps[0].actual_result.as_deref().unwrap();
        assert!(text.starts_with("Timed out: ") && text.ends_with("begun"), "{text}");
        let pid = std::fs::read_to_string(child).unwrap();
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        assert!(stat.map_or(true, |stat| stat.contains(") Z ")), "a child that ignores SIGTERM");
    }
}
