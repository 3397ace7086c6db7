//! A whole Assay for one test.

use std::path::Path;

use assay::{Assay, Backends, Settings};
use assay_auth::{SealConfig, new_seal_key};
use assay_execution::{DepotConfig, LeaseSettings};
use assay_gateway::TrustedProxies;
use assay_servers::{DataDir, Nats};
use assay_testkit::{Api, Broker, TestDatabase, test_dir};
use secrecy::SecretString;
use serde_json::{Value, json};
use uuid::Uuid;

pub(crate) const ADMIN: &str = "ada@example.org";
pub(crate) const PASSWORD: &str = "a long enough passphrase";

/// An Assay with databases and a NATS server of its own, and its administrator.
pub(crate) struct World {
    /// As the administrator.
    pub(crate) api: Api,
    assay: Assay,
    nats: Option<Nats>,
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
        let world = Box::pin(Self::launch(nats.url().into(), settings)).await;
        Self { nats: Some(nats), ..world }
    }

    /// With a NATS server that is the test's own.
    pub(crate) async fn start_on(broker: &Broker) -> Self {
        let dir = test_dir().unwrap().join(Uuid::now_v7().to_string());
        // On the heap: as a local of every test it would be large.
        Box::pin(Self::launch(broker.url().into(), settings(&dir))).await
    }

    async fn launch(nats_url: SecretString, settings: Settings) -> Self {
        assay_runtime::install_crypto();
        let (identity, catalog, execution, notification) = tokio::join!(
            database("identity", assay_identity::migrations()),
            database("catalog", assay_catalog::migrations()),
            database("execution", assay_execution::migrations()),
            database("notification", assay_notification::migrations()),
        );
        let backends = Backends { identity, catalog, execution, notification, nats_url };
        let (assay, api) = launch(&backends, &settings).await;
        Self { api, assay, nats: None, backends, settings }
    }

    /// The same Assay, stopped and started again.
    pub(crate) async fn restarted(self) -> Self {
        self.assay.stop().await.unwrap();
        let (assay, api) = launch(&self.backends, &self.settings).await;
        Self { api, assay, ..self }
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
        trusted_proxies: TrustedProxies::default(),
        depot: DepotConfig::folder(&dir.join("artifacts")),
        leases: LeaseSettings { lease_seconds: 60, lease_losses: 3 },
        notification_retention_days: 365,
    }
}

async fn launch(backends: &Backends, settings: &Settings) -> (Assay, Api) {
    let assay = Box::pin(Assay::start(backends, settings.clone())).await.unwrap();
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
