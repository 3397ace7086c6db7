//! A whole Assay for one test.

use assay::{Assay, Backends, Settings};
use assay_auth::{SealConfig, new_seal_key};
use assay_servers::{DataDir, Nats};
use assay_testkit::{Api, TestDatabase, test_dir};
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
    nats: Nats,
    backends: Backends,
    seal: SealConfig,
}

impl World {
    pub(crate) async fn start() -> Self {
        // On the heap: as a local of every test it would be large.
        Box::pin(Self::launch()).await
    }

    async fn launch() -> Self {
        assay_runtime::install_crypto();
        let data = DataDir::lock(test_dir().unwrap().join(Uuid::now_v7().to_string())).unwrap();
        let nats = Nats::start(&data, None).await.unwrap();
        let (identity, catalog, execution, notification) = tokio::join!(
            database("identity", assay_identity::migrations()),
            database("catalog", assay_catalog::migrations()),
            database("execution", assay_execution::migrations()),
            database("notification", assay_notification::migrations()),
        );
        let nats_url = nats.url().into();
        let backends = Backends { identity, catalog, execution, notification, nats_url };
        let seal = SealConfig { encryption_keys: new_seal_key("1").unwrap() };
        let (assay, api) = launch(&backends, &seal).await;
        Self { api, assay, nats, backends, seal }
    }

    /// The same Assay, stopped and started again.
    pub(crate) async fn restarted(self) -> Self {
        self.assay.stop().await.unwrap();
        let (assay, api) = launch(&self.backends, &self.seal).await;
        Self { api, assay, ..self }
    }

    /// Without a token.
    pub(crate) fn anonymous(&self) -> Api {
        Api::new(format!("http://{}", self.assay.address))
    }

    pub(crate) fn nats_url(&self) -> &str {
        self.nats.url()
    }

    pub(crate) async fn stop(self) {
        self.assay.stop().await.unwrap();
        self.nats.stop().await.unwrap();
    }
}

async fn database(schema: &str, migrations: sqlx::migrate::Migrator) -> SecretString {
    TestDatabase::create(schema, &migrations).await.unwrap().url.into()
}

async fn launch(backends: &Backends, seal: &SealConfig) -> (Assay, Api) {
    let settings = Settings {
        http_listen: ([127, 0, 0, 1], 0).into(),
        admin_email: Some(ADMIN.to_owned()),
        admin_password: Some(PASSWORD.into()),
        seal: seal.clone(),
    };
    let assay = Box::pin(Assay::start(backends, settings)).await.unwrap();
    let anonymous = Api::new(format!("http://{}", assay.address));
    let api = log_in(&anonymous, ADMIN, PASSWORD).await;
    (assay, api)
}

/// The same client with the token of that account.
async fn log_in(api: &Api, email: &str, password: &str) -> Api {
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
