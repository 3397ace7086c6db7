//! Settings of the engine.

use std::{ffi::OsString, path::PathBuf};

use assay_client::Account;
use uuid::Uuid;

/// Settings of the engine.
#[derive(clap::Args, Clone, Debug)]
pub struct Config {
    #[command(flatten)]
    pub account: Account,
    /// Target group whose tests the engine runs; empty for tests without an environment
    #[arg(long, env = "ASSAY_TARGET_GROUP", default_value = "")]
    pub target_group: String,
    /// Labels that the engine offers in addition to the target group, separated by commas. It runs tests whose
    /// environment needs no others
    #[arg(long, env = "ASSAY_ENGINE_LABELS", value_delimiter = ',')]
    pub labels: Vec<String>,
    /// Ids of the projects whose tests the engine runs, separated by commas; all projects by default, and if it is empty
    #[arg(long, env = "ASSAY_ENGINE_PROJECTS", value_delimiter = ',')]
    pub projects: Vec<Uuid>,
    /// Run only tests whose subject needs a public IP address (true) or only those whose subject
    /// does not (false); both by default
    #[arg(long, env = "ASSAY_ENGINE_NEEDS_PUBLIC_IP")]
    pub needs_public_ip: Option<bool>,
    /// Name of the engine, shown with its leases
    #[arg(long, env = "ASSAY_ENGINE_NAME", default_value = "assay-engine")]
    pub name: String,
    /// Maximum number of concurrent tests
    #[arg(
        long,
        env = "ASSAY_ENGINE_PARALLEL",
        default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..=1000)
    )]
    pub parallel: u16,
    /// Interval between heartbeats, which renew the lease of a running test, in seconds. By default,
    /// a lease expires 60 seconds after its last heartbeat
    #[arg(
        long,
        env = "ASSAY_ENGINE_HEARTBEAT_SECONDS",
        default_value_t = 15,
        value_parser = clap::value_parser!(u16).range(1..)
    )]
    pub heartbeat_seconds: u16,
    /// Time that running tests have to finish when the engine stops, in seconds. Unfinished tests
    /// return to the queue
    #[arg(long, env = "ASSAY_ENGINE_GRACE_SECONDS", default_value_t = 20)]
    pub grace_seconds: u16,
    /// Whether the output of tests is sent to Assay while they run, where all who may read results see
    /// it, and kept as an artifact
    #[arg(
        long,
        env = "ASSAY_ENGINE_LIVE_LOG",
        default_value_t = true,
        action = clap::ArgAction::Set
    )]
    pub live_log: bool,
    /// Folder in which files of tests are kept, for this engine alone. By default, they are kept in a
    /// temporary folder until the engine ends
    #[arg(long, env = "ASSAY_ENGINE_CACHE")]
    pub cache: Option<PathBuf>,
    /// Maximum size of the files that are kept, in GiB, without those of running tests; 0 to download no
    /// files, and to use no folder
    #[arg(long, env = "ASSAY_ENGINE_CACHE_GIB", default_value_t = 20)]
    pub cache_gib: u32,
    /// Command that runs a test, with its arguments
    #[arg(last = true, required = true)]
    pub command: Vec<OsString>,
}

#[cfg(test)]
impl Config {
    /// Reads the arguments of a command line, beside a token.
    pub(crate) fn of(arguments: &[&str]) -> Result<Self, clap::Error> {
        #[derive(clap::Parser)]
        struct Arguments {
            #[command(flatten)]
            config: Config,
        }
        let words = ["assay-engine", "--token", "t"].iter().chain(arguments);
        Ok(<Arguments as clap::Parser>::try_parse_from(words)?.config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn projects(given: &[&str]) -> Result<usize, clap::Error> {
        Ok(Config::of(&[given, &["--", "true"]].concat())?.projects.len())
    }

    #[test]
    fn projects_are_ids() {
        const ID: &str = "019cade2-11c0-7226-b375-01b542390175";
        assert_eq!(projects(&[]).unwrap(), 0);
        assert_eq!(projects(&[&format!("--projects={ID},{ID}")]).unwrap(), 2);
        // An empty list would lift the restriction.
        for wrong in ["", ",", "shop", &format!("{ID},")] {
            assert!(projects(&[&format!("--projects={wrong}")]).is_err(), "{wrong:?}");
        }
    }
}
