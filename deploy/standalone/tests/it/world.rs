//! A whole Assay for one test.

use std::path::Path;

use assay::{Assay, Backends, Settings};
use assay_auth::{SealConfig, new_seal_key};
use assay_execution::{DepotConfig, LeaseSettings};
use assay_gateway::EdgeConfig;
use assay_notification::WebhookConfig;
use assay_runtime::Networks;
use assay_servers::{DataDir, Nats};
use assay_testkit::{Api, Broker, TestDatabase, Wire, test_dir};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};
use uuid::Uuid;

pub(crate) const ADMIN: &str = "ada@example.org";
pub(crate) const PASSWORD: &str = "a long enough passphrase";

/// The users of the NATS configuration that is shipped.
const USERS: [&str; 7] =
    ["operator", "identity", "catalog", "execution", "notification", "gateway", "billing"];

/// Where a program reaches the NATS server with a URL.
type OfProgram = fn(&str, &str) -> String;

pub(crate) fn nats_password(user: &str) -> String {
    format!("the-password-of-{user}")
}

/// The URL of a NATS server, for a user of the configuration that is shipped.
pub(crate) fn as_nats_user(url: &str, user: &str) -> String {
    url.replace("nats://", &format!("nats://{user}:{}@", nats_password(user)))
}

/// The URL of a NATS server that knows no users.
fn as_anybody(url: &str, _: &str) -> String {
    url.to_owned()
}

/// An Assay with databases and a NATS server of its own, and its administrator.
pub(crate) struct World {
    /// As the administrator.
    pub(crate) api: Api,
    assay: Assay,
    nats: Option<Nats>,
    of_program: OfProgram,
    backends: Backends,
    settings: Settings,
}

impl World {
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    /// With settings of its own.
    pub(crate) async fn start_with(choose: impl FnOnce(&mut Settings)) -> Self {
        let dir = test_dir().unwrap().join(Uuid::now_v7().to_string());
        let mut settings = settings(&dir);
        choose(&mut settings);
        let nats = Nats::start(&DataDir::lock(dir).unwrap(), None).await.unwrap();
        // On the heap: as a local of every test it would be large.
        let world = Box::pin(Self::launch(nats.url().into(), settings, as_anybody)).await;
        Self { nats: Some(nats), ..world }
    }

    /// With the NATS configuration that is shipped, and each program as its own NATS user.
    pub(crate) async fn start_guarded() -> Self {
        let dir = test_dir().unwrap().join(Uuid::now_v7().to_string());
        let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("../nats/nats-server.conf");
        let config = config.canonicalize().unwrap();
        let variables = USERS.map(|user| {
            let variable = format!("ASSAY_NATS_{}_PASSWORD", user.to_uppercase());
            (variable, nats_password(user))
        });
        let variables = variables.each_ref().map(|(name, value)| (name.as_str(), value.as_str()));
        let data = DataDir::lock(&dir).unwrap();
        let nats = Nats::start_with(&data, &config, &variables).await.unwrap();
        let world = Box::pin(Self::launch(nats.url().into(), settings(&dir), as_nats_user)).await;
        Self { nats: Some(nats), ..world }
    }

    /// With a NATS server that is the test's own.
    pub(crate) async fn start_on(broker: &Broker) -> Self {
        let dir = test_dir().unwrap().join(Uuid::now_v7().to_string());
        Box::pin(Self::launch(broker.url().into(), settings(&dir), as_anybody)).await
    }

    async fn launch(nats_url: SecretString, settings: Settings, of_program: OfProgram) -> Self {
        assay_runtime::install_crypto();
        let (identity, catalog, execution, notification) = tokio::join!(
            database("identity", assay_identity::migrations()),
            database("catalog", assay_catalog::migrations()),
            database("execution", assay_execution::migrations()),
            database("notification", assay_notification::migrations()),
        );
        let backends = Backends { identity, catalog, execution, notification, nats_url };
        let (assay, api) = launch(&backends, &settings, of_program).await;
        Self { api, assay, nats: None, of_program, backends, settings }
    }

    /// The same Assay, stopped and started again.
    pub(crate) async fn restarted(self) -> Self {
        self.assay.stop().await.unwrap();
        let (assay, api) = launch(&self.backends, &self.settings, self.of_program).await;
        Self { api, assay, ..self }
    }

    /// The same Assay, whose catalog now reaches a database by a wire: its own, unless another one
    /// is given.
    pub(crate) async fn restarted_on_a_wire(mut self, database: Option<&str>) -> (Self, Wire) {
        let database = database.unwrap_or(self.backends.catalog.expose_secret());
        let (wire, url) = Wire::to_postgres(database).await.unwrap();
        self.backends.catalog = url.into();
        (self.restarted().await, wire)
    }

    /// Where it is.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.assay.address)
    }

    /// Without a token.
    pub(crate) fn anonymous(&self) -> Api {
        Api::new(self.url())
    }

    pub(crate) fn nats_url(&self) -> &str {
        self.nats.as_ref().expect("NATS was stopped").url()
    }

    /// What the NATS server has logged so far.
    pub(crate) fn nats_log(&self) -> String {
        let data = self.settings.mail_dir.parent().expect("mails are among the data");
        std::fs::read_to_string(data.join("nats.log")).unwrap()
    }

    /// Takes NATS away for good.
    pub(crate) async fn stop_nats(&mut self) {
        self.nats.take().expect("NATS was stopped").stop().await.unwrap();
    }

    /// The database of the identity service.
    pub(crate) fn identity(&self) -> &SecretString {
        &self.backends.identity
    }

    /// The databases of identity, catalog, execution and notification.
    pub(crate) fn databases(&self) -> [&SecretString; 4] {
        let Backends { identity, catalog, execution, notification, .. } = &self.backends;
        [identity, catalog, execution, notification]
    }

    /// The databases of the catalog and of the execution service.
    pub(crate) fn catalog_and_execution(&self) -> [&SecretString; 2] {
        [&self.backends.catalog, &self.backends.execution]
    }

    pub(crate) fn seal(&self) -> &SealConfig {
        &self.settings.seal
    }

    /// Where mails are written to.
    pub(crate) fn mail_dir(&self) -> &Path {
        &self.settings.mail_dir
    }

    pub(crate) async fn stop(self) {
        self.assay.stop().await.unwrap();
        if let Some(nats) = self.nats {
            nats.stop().await.unwrap();
        }
    }
}

async fn database(schema: &str, migrations: sqlx::migrate::Migrator) -> SecretString {
    TestDatabase::create(schema, &migrations).await.unwrap().url.into()
}

/// As somebody sets it up who has a domain, but neither a mail server nor a proxy.
fn settings(dir: &Path) -> Settings {
    Settings {
        http_listen: ([127, 0, 0, 1], 0).into(),
        admin_email: Some(ADMIN.to_owned()),
        admin_password: Some(PASSWORD.into()),
        seal: SealConfig { encryption_keys: new_seal_key("1").unwrap() },
        public_url: "https://assay.test".parse().ok(),
        base_domain: Some("assay.test".to_owned()),
        smtp_url: None,
        mail_from: None,
        mail_dir: dir.join("mail"),
        edge: edge(),
        depot: DepotConfig::folder(&dir.join("artifacts")),
        leases: LeaseSettings { lease_seconds: 60, lease_losses: 3, execution_hours: 168 },
        notification_retention_days: 365,
        webhooks: WebhookConfig { webhook_networks: Networks::default() },
    }
}

/// Without limits: a test asks for more than a person.
fn edge() -> EdgeConfig {
    EdgeConfig {
        trusted_proxies: Networks::default(),
        cors_origins: Vec::new(),
        requests_per_address: 0,
        requests_per_customer: 0,
        requests_at_once: 1000,
        calls_at_once: 0,
        connections: 10_000,
    }
}

async fn launch(backends: &Backends, settings: &Settings, of_program: OfProgram) -> (Assay, Api) {
    let nats = backends.nats_url.expose_secret();
    let nats = |program| of_program(nats, program).into();
    let assay = Box::pin(Assay::start_as(backends, settings.clone(), nats)).await.unwrap();
    let anonymous = Api::new(format!("http://{}", assay.address));
    let api = log_in(&anonymous, ADMIN, PASSWORD).await;
    (assay, api)
}

/// The same client with the token of that account.
pub(crate) async fn log_in(api: &Api, email: &str, password: &str) -> Api {
    let body = json!({"Email": email, "Password": password});
    let token = api.post("/api/token/login", body).await.ok();
    api.with_token(token["token"].as_str().unwrap())
}

/// The id of a record.
pub(crate) fn id(record: &Value) -> &str {
    record["Id"].as_str().unwrap_or_else(|| panic!("{record} has no Id"))
}

/// A new project's path: `/api/projects/…`.
pub(crate) async fn project(api: &Api) -> String {
    let body = json!({"Name": "Rocket", "Description": "Flies"});
    format!("/api/projects/{}", id(&api.post("/api/projects", body).await.created()))
}
