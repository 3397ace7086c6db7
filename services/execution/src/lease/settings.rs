//! How long leases and executions last.

use std::time::Duration;

/// How long leases last, and executions.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Settings {
    /// How many seconds an engine may be silent until its work goes to another one
    #[arg(
        long,
        env = "ASSAY_LEASE_SECONDS",
        default_value_t = 60,
        value_parser = clap::value_parser!(u32).range(1..=3600)
    )]
    pub lease_seconds: u32,
    /// How many engines may fall silent with the same work until that is given up
    #[arg(
        long,
        env = "ASSAY_LEASE_LOSSES",
        default_value_t = 3,
        value_parser = clap::value_parser!(u32).range(1..=1000)
    )]
    pub lease_losses: u32,
    /// How many hours after its request an execution is ended whose set has no time-out, or a longer
    /// one; what has not finished by then is aborted
    #[arg(
        long,
        env = "ASSAY_EXECUTION_HOURS",
        default_value_t = 168,
        value_parser = clap::value_parser!(u32).range(1..=100_000)
    )]
    pub execution_hours: u32,
}

impl Settings {
    pub(crate) fn lease(self) -> Duration {
        Duration::from_secs(self.lease_seconds.into())
    }

    /// How many minutes after its request an execution with this time-out is ended.
    pub(crate) fn deadline_in_min(self, time_out: f64) -> f64 {
        let most = f64::from(self.execution_hours) * 60.0;
        if time_out > 0.0 { time_out.min(most) } else { most }
    }
}
