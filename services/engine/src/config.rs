//! What an engine is told.

use std::ffi::OsString;

use secrecy::SecretString;
use url::Url;

/// Where an engine gets its work from, and how it does it.
#[derive(clap::Args, Clone, Debug)]
pub struct Config {
    /// Where Assay is, such as <https://assay.example.org>
    #[arg(long, env = "ASSAY_URL", default_value = "http://127.0.0.1:8080")]
    pub url: Url,
    /// An API token with the permission Automation; in a file, named in `ASSAY_TOKEN_FILE`, it
    /// is seen by nobody else
    #[arg(long, env = "ASSAY_TOKEN", hide_env_values = true)]
    pub token: SecretString,
    /// Which environments the engine serves: those of this target group; empty for tests without an
    /// environment
    #[arg(long, env = "ASSAY_TARGET_GROUP", default_value = "")]
    pub target_group: String,
    /// Whether the engine gets tests whose subject has to be reached from the internet: only those
    /// (true), none of them (false), or both where absent
    #[arg(long, env = "ASSAY_ENGINE_NEEDS_PUBLIC_IP")]
    pub needs_public_ip: Option<bool>,
    /// What the engine is called
    #[arg(long, env = "ASSAY_ENGINE_NAME", default_value = "assay-engine")]
    pub name: String,
    /// How many tests are run at once
    #[arg(
        long,
        env = "ASSAY_ENGINE_PARALLEL",
        default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..=1000)
    )]
    pub parallel: u16,
    /// How often Assay is told that a test still runs, in seconds; it waits for 60
    #[arg(
        long,
        env = "ASSAY_ENGINE_HEARTBEAT_SECONDS",
        default_value_t = 15,
        value_parser = clap::value_parser!(u16).range(1..)
    )]
    pub heartbeat_seconds: u16,
    /// How long running tests may take to end when the engine is to stop, in seconds; what has not
    /// ended then is given back
    #[arg(long, env = "ASSAY_ENGINE_GRACE_SECONDS", default_value_t = 20)]
    pub grace_seconds: u16,
    /// The command, with its arguments
    #[arg(last = true, required = true)]
    pub command: Vec<OsString>,
}
