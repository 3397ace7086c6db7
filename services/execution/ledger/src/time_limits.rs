//! How long leases and executions last.

use std::time::Duration;

use crate::execution::rules::LONGEST_GRACE;

/// Longest duration of an instance that is waited for, in minutes.
const LONGEST: f64 = 6_000_000.0;

/// Settings for how long leases and executions last.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct TimeLimits {
    /// Seconds until a lease expires that its engine does not renew. The work then returns to the
    /// queue
    #[arg(
        long,
        env = "ASSAY_LEASE_SECONDS",
        default_value_t = 60,
        value_parser = clap::value_parser!(u32).range(1..=3600)
    )]
    pub lease_seconds: u32,
    /// Number of leases on the same work that may expire before it ends as an engine failure
    #[arg(
        long,
        env = "ASSAY_LEASE_LOSSES",
        default_value_t = 3,
        value_parser = clap::value_parser!(u32).range(1..=1000)
    )]
    pub lease_losses: u32,
    /// Maximum duration of an instance of a test in minutes, unless its plan states another one. Its
    /// engine stops the test, which counts as an error
    #[arg(
        long,
        env = "ASSAY_TEST_MINUTES",
        default_value_t = 360,
        value_parser = clap::value_parser!(u32).range(1..=6_000_000)
    )]
    pub test_minutes: u32,
    /// Maximum duration of an execution in hours, counted from its request. Applies also if its
    /// test set has no time-out or a longer one. Unfinished tests are aborted
    #[arg(
        long,
        env = "ASSAY_EXECUTION_HOURS",
        default_value_t = 168,
        value_parser = clap::value_parser!(u32).range(1..=100_000)
    )]
    pub execution_hours: u32,
    /// Seconds from the last result of an open execution until it ends, unless its client chooses
    /// another time. Announced tests without a result are aborted
    #[arg(
        long,
        env = "ASSAY_GRACE_SECONDS",
        default_value_t = 900,
        value_parser = clap::value_parser!(i32).range(1..=LONGEST_GRACE.into())
    )]
    pub grace_seconds: i32,
    /// Seconds for which no engine has begun an execution, after which that is published as the event
    /// `Execution.Waiting`
    #[arg(
        long,
        env = "ASSAY_QUEUE_SECONDS",
        default_value_t = 300,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000)
    )]
    pub queue_seconds: u32,
}

impl TimeLimits {
    /// Returns the time after which a lease expires unless it is renewed.
    pub fn lease(self) -> Duration {
        Duration::from_secs(self.lease_seconds.into())
    }

    /// Returns the maximum duration of an instance whose plan states these durations, in minutes; 0
    /// for the default. A test that has to run for long has the default duration on top.
    pub fn planned_in_min(self, minimum: f64, maximum: f64) -> f64 {
        let is_long = maximum <= 0.0 && minimum > 0.0;
        if is_long { minimum.min(LONGEST) + f64::from(self.test_minutes) } else { maximum }
    }

    /// Returns the maximum duration of an instance whose plan states this one, in minutes.
    pub fn test_in_min(self, maximum: f64) -> f64 {
        if maximum > 0.0 { maximum } else { f64::from(self.test_minutes) }
    }

    /// Returns the time after which a lease ends whose engine reports no instance. The engine has the
    /// duration of a lease to stop the test and to report it.
    pub fn patience(self, maximum: f64) -> Duration {
        Duration::from_secs_f64(self.test_in_min(maximum) * 60.0) + self.lease()
    }

    /// Returns the minutes from the request of an execution with this time-out to its deadline.
    pub fn deadline_in_min(self, time_out: f64) -> f64 {
        let longest = f64::from(self.execution_hours) * 60.0;
        if time_out > 0.0 { time_out.min(longest) } else { longest }
    }
}
