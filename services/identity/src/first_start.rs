//! The first start on an empty database: creates a customer, its administrator and a signing key.

use std::time::Duration;

use assay_database::{Database, begin};
use assay_proto::{
    AccountId, CustomerId, Fault, UserGroupId, UserId,
    identity::{CustomerInput, UserInput},
};
use assay_runtime::Runtime;
use secrecy::{ExposeSecret, SecretString};
use sqlx::{PgPool, PgTransaction};
use tokio::sync::oneshot;

use crate::{
    account, config::FirstStartConfig, customer, invitation, mail::INVITATION_VALIDITY, membership,
    password, password_link::PasswordLinks, signing_key::Keys, user_group::rules::ADMINISTRATORS,
};

/// Default email address of the first administrator.
const DEFAULT_EMAIL: &str = "admin@assay.local";

/// Delay before a retry if the database is unavailable.
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// The login of the administrator of a new installation. The secret is stored nowhere else.
#[derive(Debug)]
pub struct FirstLogin {
    pub email: String,
    pub secret: FirstSecret,
}

/// The generated password of the administrator, or a link for choosing one.
#[derive(Debug)]
pub enum FirstSecret {
    Password(SecretString),
    Link(SecretString),
}

/// Creates the first customer and its administrator.
pub(crate) struct FirstStart {
    operator_name: String,
    email: String,
    password: Option<SecretString>,
    generates_password: bool,
}

impl FirstStart {
    pub(crate) fn new(config: FirstStartConfig) -> Result<Self, Fault> {
        let email = config.admin_email.as_deref().unwrap_or(DEFAULT_EMAIL);
        if let Some(password) = &config.admin_password {
            let password = password.expose_secret();
            account::rules::password("ASSAY_ADMIN_PASSWORD", password, email)?;
        }
        Ok(Self {
            operator_name: config.operator_name,
            email: account::rules::email("ASSAY_ADMIN_EMAIL", email)?.into_owned(),
            password: config.admin_password,
            generates_password: config.generates_password,
        })
    }

    /// Starts to create missing records and to load the keys, in the background. The program is
    /// ready afterwards.
    pub(crate) fn spawn(
        self,
        runtime: &Runtime,
        database: &Database,
        links: &PasswordLinks,
        keys: &Keys,
    ) -> oneshot::Receiver<FirstLogin> {
        let (sender, first_login) = oneshot::channel();
        let (database, links, keys) = (database.clone(), links.clone(), keys.clone());
        let (gate, stopping) = (runtime.gate("first start"), runtime.stopping());
        runtime.spawn("first start", async move {
            let work = async {
                database.ready().await;
                self.run_until_done(database.pool(), &links, &keys).await
            };
            let Some(done) = stopping.run_until_cancelled(work).await else { return Ok(()) };
            if let Some(login) = done? {
                // The receiver may have been dropped.
                let _ = sender.send(login);
            }
            gate.open();
            Ok(())
        });
        first_login
    }

    async fn run_until_done(
        &self,
        db: &PgPool,
        links: &PasswordLinks,
        keys: &Keys,
    ) -> Result<Option<FirstLogin>, Fault> {
        let mut login = None;
        loop {
            let attempt = async {
                login = self.run(db, links, keys).await?.or(login.take());
                keys.load(db).await
            };
            match attempt.await {
                Ok(()) => return Ok(login),
                Err(Fault::Unavailable(_)) => tokio::time::sleep(RETRY_DELAY).await,
                Err(fault) => return Err(fault),
            }
        }
    }

    /// Creates missing records. A lock prevents that several replicas do.
    async fn run(
        &self,
        db: &PgPool,
        links: &PasswordLinks,
        keys: &Keys,
    ) -> Result<Option<FirstLogin>, Fault> {
        let mut tx = begin(db).await?;
        sqlx::query("select pg_advisory_xact_lock(hashtextextended('assay first start', 0))")
            .execute(&mut *tx)
            .await?;
        keys.create_first(&mut tx).await?;
        let login = if customer::store::any_exists(&mut *tx).await? {
            None
        } else {
            self.create_operator(&mut tx, links).await?
        };
        tx.commit().await?;
        Ok(login)
    }

    /// Creates the first customer with its user groups and administrator.
    async fn create_operator(
        &self,
        tx: &mut PgTransaction<'_>,
        links: &PasswordLinks,
    ) -> Result<Option<FirstLogin>, Fault> {
        let customer = CustomerId::new();
        customer::store::insert(tx, customer, &operator(&self.operator_name)).await?;
        customer::store::set_operator(tx, customer).await?;
        let groups = customer::create_groups(tx, customer, true).await?;
        let group = groups.iter().find(|group| group.name == ADMINISTRATORS);
        let group = group
            .ok_or_else(|| Fault::internal("the new customer has no group of administrators"))?;
        let group = UserGroupId::from_field("UserGroup", &group.id)?;

        let secret = match &self.password {
            Some(password) => {
                self.create_administrator(tx, links, customer, group, password).await?;
                None
            }
            None if self.generates_password => {
                let password = password::generate()?;
                self.create_administrator(tx, links, customer, group, &password).await?;
                Some(FirstSecret::Password(password))
            }
            None => {
                let user = UserId::new();
                membership::store::insert(tx, customer, user, None, group, &administrator())
                    .await?;
                invitation::store::replace(tx, customer, user, &self.email, None).await?;
                let link = links.invite(tx, customer, user, INVITATION_VALIDITY).await?;
                Some(FirstSecret::Link(link))
            }
        };
        tracing::info!(customer.id = %customer, "created the first customer and its administrator");
        Ok(secret.map(|secret| FirstLogin { email: self.email.clone(), secret }))
    }

    async fn create_administrator(
        &self,
        tx: &mut PgTransaction<'_>,
        links: &PasswordLinks,
        customer: CustomerId,
        group: UserGroupId,
        password: &SecretString,
    ) -> Result<(), Fault> {
        let hash = links.passwords.acquire()?.hash(password.clone()).await?;
        let (account, user) = (AccountId::new(), UserId::new());
        account::store::insert(tx, account, &self.email, &hash).await?;
        membership::store::insert(tx, customer, user, Some(account), group, &administrator()).await
    }
}

fn operator(name: &str) -> CustomerInput {
    customer::rules::with_defaults(CustomerInput {
        name: name.to_owned(),
        subdomain: "operator".to_owned(),
        ..CustomerInput::default()
    })
}

fn administrator() -> UserInput {
    UserInput { display_name: "Administrator".to_owned(), ..UserInput::default() }
}
