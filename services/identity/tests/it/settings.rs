//! Settings of a service in a test.

use std::path::PathBuf;

use anyhow::Result;
use assay_auth::{SealConfig, new_seal_key};
use assay_identity::{Config, migrations};
use assay_proto::UserId;
use assay_testkit::{TestDatabase, test_dir};
use clap::Parser;
use secrecy::ExposeSecret;

use crate::world::{ADMIN, PASSWORD};

/// Settings of a service.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) database_url: String,
    encryption_keys: String,
    nats_url: String,
    /// Directory that mails are written to.
    pub(crate) mail_dir: PathBuf,
    rest: Vec<String>,
}

#[derive(Parser)]
struct Options {
    #[command(flatten)]
    config: Config,
}

impl Settings {
    pub(crate) async fn new() -> Result<Self> {
        let database = TestDatabase::create("identity", &migrations()).await?;
        Self::with_database(database)
    }

    /// Settings with an empty database without a schema.
    pub(crate) async fn with_empty_database() -> Result<Self> {
        Self::with_database(TestDatabase::empty().await?)
    }

    fn with_database(database: TestDatabase) -> Result<Self> {
        let encryption_keys = new_seal_key("test")?.expose_secret().to_owned();
        let mail_dir = test_dir()?.join(format!("mail-{}", UserId::new()));
        // No server listens there; the service must work without NATS.
        let nats_url = "nats://127.0.0.1:1".to_owned();
        let database_url = database.url;
        Ok(Self { database_url, encryption_keys, nats_url, mail_dir, rest: Vec::new() })
    }

    pub(crate) fn and(mut self, option: &str, value: &str) -> Self {
        self.rest.push(format!("--{option}={value}"));
        self
    }

    pub(crate) fn with_nats(self, url: &str) -> Self {
        Self { nats_url: url.to_owned(), ..self }
    }

    pub(crate) fn with_administrator(self) -> Self {
        self.and("admin-email", ADMIN).and("admin-password", PASSWORD)
    }

    pub(crate) fn with_other_encryption_keys(self) -> Result<Self> {
        Ok(Self { encryption_keys: new_seal_key("other")?.expose_secret().to_owned(), ..self })
    }

    pub(crate) fn seal(&self) -> SealConfig {
        SealConfig { encryption_keys: self.encryption_keys.as_str().into() }
    }

    pub(crate) fn config(&self) -> Result<Config> {
        let options = [
            "assay-identity".to_owned(),
            format!("--database-url={}", self.database_url),
            format!("--encryption-keys={}", self.encryption_keys),
            "--grpc-listen=127.0.0.1:0".to_owned(),
            format!("--nats-url={}", self.nats_url),
            "--public-url=https://www.assay.example".to_owned(),
            format!("--mail-dir={}", self.mail_dir.display()),
        ];
        Ok(Options::try_parse_from(options.iter().chain(&self.rest))?.config)
    }
}
