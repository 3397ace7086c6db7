//! A running identity service, and the customers and accounts of a test.

use std::path::PathBuf;

use anyhow::Result;
use assay_auth::{Caller, Verifier, anonymous, new_seal_key};
use assay_identity::{Config, FirstLogin, migrations, start};
use assay_proto::{
    CustomerId, UserGroupId, UserId,
    identity::{
        LoginInput, LoginRequest, RefineRequest, customer_service_client::CustomerServiceClient,
        token_service_client::TokenServiceClient,
    },
};
use assay_runtime::{Runtime, grpc, install_crypto};
use assay_testkit::{TestDatabase, test_dir};
use clap::Parser;
use secrecy::ExposeSecret;
use sqlx::PgPool;
use tokio::sync::oneshot;
use tonic::{Status, transport::Channel};

pub(crate) const ADMIN: &str = "Ada@Example.com";
pub(crate) const PASSWORD: &str = "correct horse battery staple";

/// What a service is started with.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) database_url: String,
    encryption_keys: String,
    /// Where mails are written to.
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

    /// Settings with a database that is empty, not even migrated.
    pub(crate) async fn with_empty_database() -> Result<Self> {
        Self::with_database(TestDatabase::empty().await?)
    }

    fn with_database(database: TestDatabase) -> Result<Self> {
        let encryption_keys = new_seal_key("test")?.expose_secret().to_owned();
        let mail_dir = test_dir()?.join(format!("mail-{}", UserId::new()));
        Ok(Self { database_url: database.url, encryption_keys, mail_dir, rest: Vec::new() })
    }

    pub(crate) fn and(mut self, option: &str, value: &str) -> Self {
        self.rest.push(format!("--{option}={value}"));
        self
    }

    pub(crate) fn with_administrator(self) -> Self {
        self.and("admin-email", ADMIN).and("admin-password", PASSWORD)
    }

    pub(crate) fn with_other_encryption_keys(self) -> Result<Self> {
        Ok(Self { encryption_keys: new_seal_key("other")?.expose_secret().to_owned(), ..self })
    }

    pub(crate) fn config(&self) -> Result<Config> {
        let options = [
            "assay-identity".to_owned(),
            format!("--database-url={}", self.database_url),
            format!("--encryption-keys={}", self.encryption_keys),
            "--grpc-listen=127.0.0.1:0".to_owned(),
            // Nobody is there, which must not matter.
            "--nats-url=nats://127.0.0.1:1".to_owned(),
            "--public-url=https://www.assay.example".to_owned(),
            format!("--mail-dir={}", self.mail_dir.display()),
        ];
        Ok(Options::try_parse_from(options.iter().chain(&self.rest))?.config)
    }
}

/// A running service.
pub(crate) struct Identity {
    pub(crate) runtime: Runtime,
    pub(crate) first_login: oneshot::Receiver<FirstLogin>,
    pub(crate) db: PgPool,
    pub(crate) mail_dir: PathBuf,
    channel: Channel,
}

impl Identity {
    /// A service of its own, with [`ADMIN`] as the operator's administrator.
    pub(crate) async fn new() -> Result<Self> {
        Self::start(&Settings::new().await?.with_administrator()).await
    }

    pub(crate) async fn start(settings: &Settings) -> Result<Self> {
        let identity = Self::begin(settings).await?;
        identity.runtime.ready().await;
        anyhow::ensure!(identity.runtime.is_ready(), "the service has stopped");
        Ok(identity)
    }

    /// Starts a service without waiting until it is ready.
    pub(crate) async fn begin(settings: &Settings) -> Result<Self> {
        install_crypto();
        let runtime = Runtime::new("assay-identity");
        let started = start(&runtime, settings.config()?).await?;
        Ok(Self {
            runtime,
            first_login: started.first_login,
            db: PgPool::connect_lazy(&settings.database_url)?,
            mail_dir: settings.mail_dir.clone(),
            channel: grpc::connect(&format!("http://{}", started.address))?,
        })
    }

    pub(crate) fn tokens(&self) -> TokenServiceClient<Channel> {
        TokenServiceClient::new(self.channel.clone())
    }

    pub(crate) fn customers(&self) -> CustomerServiceClient<Channel> {
        CustomerServiceClient::new(self.channel.clone())
    }

    pub(crate) async fn login(&self, email: &str, password: &str) -> Result<String, Status> {
        self.login_at("", email, password).await
    }

    pub(crate) async fn login_at(
        &self,
        host: &str,
        email: &str,
        password: &str,
    ) -> Result<String, Status> {
        let login = LoginInput { email: email.to_owned(), password: password.to_owned() };
        let request = LoginRequest { login: Some(login), host: host.to_owned() };
        Ok(self.tokens().login(anonymous(request)).await?.into_inner().token)
    }

    pub(crate) async fn refine(&self, caller: &Caller, customer: &str) -> Result<String, Status> {
        let request = RefineRequest { customer_id: customer.to_owned() };
        Ok(self.tokens().refine(caller.call(request)).await?.into_inner().token)
    }

    pub(crate) async fn keys(&self) -> Result<String, Status> {
        Ok(self.tokens().list_keys(anonymous(())).await?.into_inner().jwks)
    }

    /// Who a token belongs to.
    pub(crate) async fn caller(&self, token: &str) -> Result<Caller> {
        Ok(Verifier::of_keys(&self.keys().await?)?.verify(token).await?)
    }

    /// Who the account is after its login.
    pub(crate) async fn caller_of(&self, email: &str) -> Result<Caller> {
        self.caller(&self.login(email, PASSWORD).await?).await
    }

    /// Adds a customer.
    pub(crate) async fn customer(&self, subdomain: &str) -> Result<CustomerId> {
        let id = CustomerId::new();
        sqlx::query(
            "insert into customer (id, name, currency, tax, minimum_consumption_in_h, due_days,
                                   subdomain)
             values ($1, $2, 'EUR', 0, 0, 30, $2)",
        )
        .bind(id)
        .bind(subdomain)
        .execute(&self.db)
        .await?;
        Ok(id)
    }

    /// Adds an account with the password [`PASSWORD`].
    pub(crate) async fn account(&self, email: &str) -> Result<UserId> {
        let id = UserId::new();
        sqlx::query(
            "insert into account (id, email, password_hash)
             select $1, $2, password_hash from account where email = $3",
        )
        .bind(id)
        .bind(email)
        .bind(ADMIN)
        .execute(&self.db)
        .await?;
        Ok(id)
    }

    /// Makes an account a member of a customer, in a group with these permissions.
    pub(crate) async fn membership(
        &self,
        customer: CustomerId,
        account: UserId,
        permissions: &str,
    ) -> Result<()> {
        let group = UserGroupId::new();
        sqlx::query(
            "insert into user_group (customer_id, id, name, usage_permission)
             values ($1, $2, 'Group ' || $2, $3)",
        )
        .bind(customer)
        .bind(group)
        .bind(permissions)
        .execute(&self.db)
        .await?;
        sqlx::query(
            "insert into membership (customer_id, account_id, user_group_id, display_name)
             values ($1, $2, $3, 'Grace Hopper')",
        )
        .bind(customer)
        .bind(account)
        .bind(group)
        .execute(&self.db)
        .await?;
        Ok(())
    }

    /// Changes one customer; `change` is such as `archived = true`.
    pub(crate) async fn set(&self, customer: CustomerId, change: &'static str) -> Result<()> {
        let statement = format!("update customer set {change} where id = $1");
        sqlx::query(sqlx::AssertSqlSafe(statement)).bind(customer).execute(&self.db).await?;
        Ok(())
    }
}
