//! One lease: its instances are run one after the other, while Assay is told that they still are.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use assay_proto::{
    TestResult,
    execution::{CompleteLeaseInput, InstanceResultInput, Lease},
};
use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval, sleep},
};
use tokio_util::sync::CancellationToken;

use crate::{
    Config,
    api::{Api, Refusal},
    command::Command,
};

pub(crate) struct Job {
    pub(crate) config: Arc<Config>,
    pub(crate) api: Api,
    /// Cancelled when the engine is to stop.
    pub(crate) stop: CancellationToken,
    pub(crate) lease: Lease,
}

/// Why a job ends before all its instances were run.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Interruption {
    /// The rest is not wanted any more.
    Unwanted,
    /// The work is somebody else's now.
    Lost,
    /// The engine stops, and did not get done in time.
    Stopped,
}

impl Job {
    /// Runs all instances. Whatever comes between, the command is stopped first.
    pub(crate) async fn run(self) {
        let id = self.lease.id.clone();
        let (interrupted, interruption) = watch::channel(None);
        let ended = tokio::select! {
            ended = self.instances(interruption) => ended,
            () = self.watch(&interrupted) => Ok(None),
        };
        let reason = *interrupted.borrow();
        let done = match (ended, reason) {
            (_, Some(Interruption::Lost)) => {
                return tracing::warn!(lease = id, "the work was lost");
            }
            (Err(refusal), _) if refusal.is_loss() => {
                return tracing::warn!(lease = id, %refusal, "the work is not wanted any more");
            }
            (_, Some(Interruption::Stopped)) => self.api.release(&id).await,
            (Err(refusal), _) => {
                self.complete(Some(format!("Its result was refused: {refusal}"))).await
            }
            (Ok(failure), _) => self.complete(failure).await,
        };
        if let Err(refusal) = done {
            tracing::warn!(lease = id, %refusal, "not told that the work is over");
        }
    }

    async fn complete(&self, failure: Option<String>) -> Result<(), Refusal> {
        let completion = CompleteLeaseInput { engine_failure: failure.is_some(), comment: failure };
        self.api.complete(&self.lease.id, &completion).await
    }

    /// Runs and reports one instance after the other. Says why the engine failed, if it did.
    async fn instances(
        &self,
        mut interruption: watch::Receiver<Option<Interruption>>,
    ) -> Result<Option<String>, Refusal> {
        for nr in &self.lease.instance_numbers {
            match self.instance(*nr, &mut interruption).await {
                Ok(Some(instance)) => self.api.report(&self.lease.id, instance).await?,
                Ok(None) => return Ok(None),
                Err(error) => {
                    tracing::error!(lease = self.lease.id, error = format!("{error:#}"));
                    return Ok(Some(format!("{error:#}")));
                }
            }
        }
        Ok(None)
    }

    /// Runs the command for one instance; as long as it passes, again until the least duration of
    /// the plan is over. What is reported is the last run, with the time of all.
    async fn instance(
        &self,
        nr: i32,
        interruption: &mut watch::Receiver<Option<Interruption>>,
    ) -> anyhow::Result<Option<InstanceResultInput>> {
        let least = Duration::try_from_secs_f64(self.lease.minimum_duration_in_min * 60.0);
        let least = least.unwrap_or_default();
        let (begun, mut started, mut runs) = (Instant::now(), None, 0);
        loop {
            let command = Command::new(&self.config.command, &self.lease, nr);
            let interrupted = async {
                // It never ends without one: the sender outlives this.
                let _ = interruption.wait_for(Option::is_some).await;
            };
            let Some(instance) = command.run(interrupted).await? else { return Ok(None) };
            runs += 1;
            let started = *started.get_or_insert(instance.start_date_time);
            if instance.result() == TestResult::Passed && begun.elapsed() < least {
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

    /// Tells Assay that the work goes on, and whoever does it when it is not to. Ends only with
    /// that.
    async fn watch(&self, interrupted: &watch::Sender<Option<Interruption>>) {
        let interrupt = |why| {
            tracing::info!(lease = self.lease.id, ?why, "a test is stopped");
            interrupted.send_replace(Some(why));
        };
        tokio::select! {
            why = self.heartbeat() => interrupt(why),
            () = self.grace() => interrupt(Interruption::Stopped),
        }
        std::future::pending::<()>().await;
    }

    async fn heartbeat(&self) -> Interruption {
        let mut tick = interval(Duration::from_secs(self.config.heartbeat_seconds.into()));
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            match self.api.renew(&self.lease.id).await {
                Ok(state) if !state.r#continue => return Interruption::Unwanted,
                Ok(_) => {}
                Err(refusal) if refusal.is_loss() => return Interruption::Lost,
                Err(refusal) => tracing::warn!(%refusal, "no heartbeat"),
            }
        }
    }

    /// Ends some time after the engine was told to stop.
    async fn grace(&self) {
        self.stop.cancelled().await;
        sleep(Duration::from_secs(self.config.grace_seconds.into())).await;
    }
}

#[cfg(test)]
mod tests {
    use assay_proto::TestType;
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Arguments {
        #[command(flatten)]
        config: Config,
    }

    fn job(command: &str, minimum_duration_in_min: f64) -> Job {
        let words = ["assay-engine", "--token", "t", "--", "sh", "-c", command];
        let config = Arguments::parse_from(words).config;
        let mut lease = Lease { minimum_duration_in_min, ..Lease::default() };
        lease.set_test_type(TestType::Stability);
        let (api, stop) = (Api::new(&config).unwrap(), CancellationToken::new());
        Job { config: Arc::new(config), api, stop, lease }
    }

    #[tokio::test]
    async fn a_test_is_repeated_until_its_least_duration_is_over() {
        let (_sender, mut interruption) = watch::channel(None);
        let once = job("exit 0", 0.0).instance(1, &mut interruption).await.unwrap().unwrap();
        assert_eq!(once.result(), TestResult::Passed);

        let least = 0.01;
        let long = job("exit 0", least).instance(1, &mut interruption).await.unwrap().unwrap();
        assert_eq!(long.result(), TestResult::Passed);
        assert!(long.duration_in_sec.unwrap() >= least * 60.0, "{long:?}");
        assert!(long.start_date_time.is_some());

        let failed = job("exit 1", 60.0).instance(1, &mut interruption).await.unwrap().unwrap();
        assert_eq!(failed.result(), TestResult::Failed, "a failure is not repeated");
    }
}
