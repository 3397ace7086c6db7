//! A running Assay for one test.

use std::{
    ops::Deref,
    path::{Path, PathBuf},
};

use assay::{Assay, Backends, Settings};
use assay_auth::{SealConfig, new_seal_key};
use assay_runtime::nats::NatsServers;
use assay_servers::{DataDir, Nats};
use assay_testkit::{Api, Broker, TestDatabase, Wire, test_dir};
use clap::Parser;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::installation::Installation;

pub(crate) const ADMIN: &str = "ada@example.org";
pub(crate) const PASSWORD: &str = "a long enough passphrase";

/// The users of the shipped NATS configuration.
const USERS: [&str; 7] =
    ["operator", "identity", "catalog", "execution", "notification", "gateway", "billing"];

/// Returns the NATS URL of a program, given the URL of the server.
type NatsUrl = fn(&str, &str) -> String;

/// A time this number of days from now, as clients send it.
pub(crate) fn in_days(days: i64) -> String {
    in_seconds(days * 24 * 60 * 60)
}

/// A time this number of seconds from now, as clients send it.
#[expect(clippy::disallowed_methods, reason = "a client has the clock of its machine")]
pub(crate) fn in_seconds(seconds: i64) -> String {
    let time = chrono::Utc::now() + chrono::TimeDelta::seconds(seconds);
    time.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
}

pub(crate) fn nats_password(user: &str) -> String {
    format!("the-password-of-{user}")
}

/// The URL of a NATS server for a user of the shipped configuration.
pub(crate) fn nats_url_as(url: &str, user: &str) -> String {
    url.replace("nats://", &format!("nats://{user}:{}@", nats_password(user)))
}

/// The URL of a NATS server without users.
fn nats_url_without_user(url: &str, _: &str) -> String {
    url.to_owned()
}

/// An Assay with private databases and a private NATS server, and its administrator.
pub(crate) struct World {
    installation: Installation,
    assay: Assay,
    nats: Option<Nats>,
    nats_url_of: NatsUrl,
    backends: Backends,
    settings: Settings,
}

impl World {
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    /// Starts with changed settings.
    pub(crate) async fn start_with(choose: impl FnOnce(&mut Settings)) -> Self {
        Self::start_in(&new_dir(), choose).await
    }

    /// Starts with changed settings and this data directory.
    pub(crate) async fn start_in(dir: &Path, choose: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = settings(dir);
        choose(&mut settings);
        let nats = Nats::start(&DataDir::lock(dir).unwrap(), None).await.unwrap();
        // Boxed, because the future is too large for the stack of every test.
        let world =
            Box::pin(Self::launch(nats.url().into(), settings, nats_url_without_user)).await;
        Self { nats: Some(nats), ..world }
    }

    /// Starts with the shipped NATS configuration and a NATS user for each program.
    pub(crate) async fn start_with_nats_users() -> Self {
        let dir = new_dir();
        let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("../nats/nats-server.conf");
        let config = config.canonicalize().unwrap();
        let variables = USERS.map(|user| {
            let variable = format!("ASSAY_NATS_{}_PASSWORD", user.to_uppercase());
            (variable, nats_password(user))
        });
        let variables = variables.each_ref().map(|(name, value)| (name.as_str(), value.as_str()));
        let data = DataDir::lock(&dir).unwrap();
        let nats = Nats::start_with(&data, &config, &variables).await.unwrap();
        let world = Box::pin(Self::launch(nats.url().into(), settings(&dir), nats_url_as)).await;
        Self { nats: Some(nats), ..world }
    }

    /// Starts with the NATS server of the test.
    pub(crate) async fn start_with_broker(broker: &Broker) -> Self {
        let dir = new_dir();
        Box::pin(Self::launch(broker.url().into(), settings(&dir), nats_url_without_user)).await
    }

    async fn launch(nats_url: SecretString, settings: Settings, nats_url_of: NatsUrl) -> Self {
        assay_runtime::install_crypto();
        let (identity, catalog, execution, notification) = tokio::join!(
            database("identity", assay_identity::migrations()),
            database("catalog", assay_catalog::migrations()),
            database("execution", assay_execution::migrations()),
            database("notification", assay_notification::migrations()),
        );
        let nats = NatsServers::at(nats_url);
        let seal = SealConfig { encryption_keys: new_seal_key("1").unwrap() };
        let backends = Backends { identity, catalog, execution, notification, nats, seal };
        let (installation, assay) = launch(&backends, &settings, nats_url_of).await;
        Self { installation, assay, nats: None, nats_url_of, backends, settings }
    }

    /// Stops Assay and starts it again.
    pub(crate) async fn restart(self) -> Self {
        self.assay.stop().await.unwrap();
        let (installation, assay) = launch(&self.backends, &self.settings, self.nats_url_of).await;
        Self { installation, assay, ..self }
    }

    /// Restarts Assay with a wire between the catalog and its database, or the given database.
    pub(crate) async fn restart_with_catalog_on_wire(
        mut self,
        database: Option<&str>,
    ) -> (Self, Wire) {
        let database = database.unwrap_or(self.backends.catalog.expose_secret());
        let (wire, url) = Wire::to_postgres(database).await.unwrap();
        self.backends.catalog = url.into();
        (self.restart().await, wire)
    }

    pub(crate) fn nats_url(&self) -> &str {
        self.nats.as_ref().expect("NATS is running").url()
    }

    /// The log of the NATS server.
    pub(crate) fn nats_log(&self) -> String {
        let data = mail_dir(&self.settings).parent().expect("mails are in the data directory");
        std::fs::read_to_string(data.join("nats.log")).unwrap()
    }

    /// Stops NATS for the rest of the test.
    pub(crate) async fn stop_nats(&mut self) {
        self.nats.take().expect("NATS is running").stop().await.unwrap();
    }

    /// URL of the database of the identity service.
    pub(crate) fn identity_database(&self) -> &SecretString {
        &self.backends.identity
    }

    /// URLs of the databases of identity, catalog, execution and notification.
    pub(crate) fn databases(&self) -> [&SecretString; 4] {
        let Backends { identity, catalog, execution, notification, .. } = &self.backends;
        [identity, catalog, execution, notification]
    }

    /// URLs of the databases of the catalog and the execution service.
    pub(crate) fn catalog_and_execution(&self) -> [&SecretString; 2] {
        [&self.backends.catalog, &self.backends.execution]
    }

    pub(crate) fn seal_config(&self) -> &SealConfig {
        &self.backends.seal
    }

    /// Resolves when one of the programs stops by itself.
    pub(crate) async fn stopped(&self) {
        self.assay.stopped().await;
    }

    pub(crate) async fn stop(self) {
        self.assay.stop().await.unwrap();
        if let Some(nats) = self.nats {
            nats.stop().await.unwrap();
        }
    }
}

impl Deref for World {
    type Target = Installation;

    fn deref(&self) -> &Installation {
        &self.installation
    }
}

/// Returns the path of a new data directory.
fn new_dir() -> PathBuf {
    test_dir().unwrap().join(Uuid::now_v7().to_string())
}

async fn database(schema: &str, migrations: sqlx::migrate::Migrator) -> SecretString {
    TestDatabase::create(schema, &migrations).await.unwrap().url.into()
}

/// Settings of an installation with a domain, without a mail server and a proxy. Without rate limits:
/// a test sends more requests than a user.
fn settings(dir: &Path) -> Settings {
    #[derive(Parser)]
    struct Options {
        #[command(flatten)]
        settings: Settings,
    }
    let in_dir = |option: &str, name: &str| format!("--{option}={}", dir.join(name).display());
    let options = [
        "assay",
        "--http-listen=127.0.0.1:0",
        "--public-url=https://assay.test",
        "--base-domain=assay.test",
        &format!("--admin-email={ADMIN}"),
        &format!("--admin-password={PASSWORD}"),
        &in_dir("mail-dir", "mail"),
        &in_dir("artifacts", "artifacts"),
        "--requests-per-address=0",
        "--requests-per-customer=0",
    ];
    Options::parse_from(options).settings
}

fn mail_dir(settings: &Settings) -> &Path {
    settings.mail.mail_dir.as_deref().expect("mails are written to files")
}

async fn launch(
    backends: &Backends,
    settings: &Settings,
    nats_url_of: NatsUrl,
) -> (Installation, Assay) {
    let nats = backends.nats.nats_url.expose_secret();
    let nats = |program| NatsServers::at(nats_url_of(nats, program).into());
    let assay = Box::pin(Assay::start_as(backends, settings.clone(), nats)).await.unwrap();
    let url = format!("http://{}", assay.address);
    let api = log_in(&Api::new(url.as_str()), ADMIN, PASSWORD).await;
    (Installation::new(url, api, mail_dir(settings).to_owned()), assay)
}

/// Logs in; returns the client with the token.
pub(crate) async fn log_in(api: &Api, email: &str, password: &str) -> Api {
    let body = json!({"Email": email, "Password": password});
    let token = api.post("/api/token/login", body).await.ok();
    api.with_token(token["token"].as_str().unwrap())
}

/// Returns the id of a record.
pub(crate) fn id(record: &Value) -> &str {
    record["Id"].as_str().unwrap_or_else(|| panic!("{record} has no Id"))
}

/// Creates a project; returns its path `/api/projects/…`.
pub(crate) async fn create_project(api: &Api) -> String {
    let body = json!({"Name": "Rocket", "Description": "Flies"});
    format!("/api/projects/{}", id(&api.post("/api/projects", body).await.created()))
}
