//! One lease: its instances are run one after the other, while Assay is told that they still are.

use std::{sync::Arc, time::Duration};

use assay_proto::execution::{CompleteLeaseInput, Lease};
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
            let command = Command::new(&self.config.command, &self.lease, *nr);
            let interrupted = async {
                // It never ends without one: the sender outlives this.
                let _ = interruption.wait_for(Option::is_some).await;
            };
            match command.run(interrupted).await {
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
