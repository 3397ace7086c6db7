//! What an empty database needs before anybody can log in: a customer, its administrator, and a key
//! to sign tokens with.

use std::time::Duration;

use assay_proto::{AccountId, CustomerId, Fault, UserGroupId, UserId, identity::CustomerInput};
use assay_runtime::{Database, Runtime, begin};
use secrecy::{ExposeSecret, SecretString};
use sqlx::{PgPool, PgTransaction};
use tokio::sync::oneshot;

use crate::{
    Config, account, customer, invitation, mail::INVITATION_VALIDITY, membership, password,
    password_link::PasswordLinks, signing_key::Keys, user_group::rules::ADMINISTRATORS,
};

/// Who administers an installation that names nobody.
const NAMELESS: &str = "admin@assay.local";

/// What others see of the first administrator.
const NAME: &str = "Administrator";

/// How long to wait for a database that was lost.
const PAUSE: Duration = Duration::from_millis(500);

/// How the administrator of a new installation logs in. The secret is known nowhere else.
#[derive(Debug)]
pub struct FirstLogin {
    pub email: String,
    pub secret: FirstSecret,
}

/// What the administrator of a new installation proves themselves with.
#[derive(Debug)]
pub enum FirstSecret {
    Password(SecretString),
    /// Where the password is chosen, once.
    Link(SecretString),
}

/// What the first start makes.
pub(crate) struct FirstStart {
    operator_name: String,
    email: String,
    password: Option<SecretString>,
    makes_password: bool,
}

impl FirstStart {
    pub(crate) fn of(config: &Config) -> Result<Self, Fault> {
        let email = config.admin_email.as_deref().unwrap_or(NAMELESS);
        if let Some(password) = &config.admin_password {
            let password = password.expose_secret();
            account::rules::password("ASSAY_ADMIN_PASSWORD", password, email)?;
        }
        Ok(Self {
            operator_name: config.operator_name.clone(),
            email: account::rules::email("ASSAY_ADMIN_EMAIL", email)?.to_owned(),
            password: config.admin_password.clone(),
            makes_password: config.makes_password,
        })
    }

    /// Makes what is missing, and loads the keys, in the background. The program is ready then.
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
                // Whoever started the program may not want to know.
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
        let mut made = None;
        loop {
            let attempt = async {
                made = self.run(db, links, keys).await?.or(made.take());
                keys.load(db).await
            };
            match attempt.await {
                Ok(()) => return Ok(made),
                Err(Fault::Unavailable(_)) => tokio::time::sleep(PAUSE).await,
                Err(fault) => return Err(fault),
            }
        }
    }

    /// Makes what is missing. Of several replicas, one does.
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
        keys.make_first(&mut tx).await?;
        let login = if customer::store::any(&mut *tx).await? {
            None
        } else {
            self.make_operator(&mut tx, links).await?
        };
        tx.commit().await?;
        Ok(login)
    }

    /// Makes the first customer with its groups and administrator.
    async fn make_operator(
        &self,
        tx: &mut PgTransaction<'_>,
        links: &PasswordLinks,
    ) -> Result<Option<FirstLogin>, Fault> {
        let customer = CustomerId::new();
        customer::store::insert(tx, customer, &operator(&self.operator_name)).await?;
        customer::store::make_operator(tx, customer).await?;
        let groups = customer::make_groups(tx, customer, true).await?;
        let group = groups.iter().find(|group| group.name == ADMINISTRATORS);
        let group = group.ok_or_else(|| Fault::internal("there are no administrators"))?;
        let group = UserGroupId::from_field("UserGroup", &group.id)?;

        let secret = match &self.password {
            Some(password) => {
                self.make_administrator(tx, links, customer, group, password).await?;
                None
            }
            None if self.makes_password => {
                let password = password::generate()?;
                self.make_administrator(tx, links, customer, group, &password).await?;
                Some(FirstSecret::Password(password))
            }
            None => {
                let user = UserId::new();
                membership::store::insert(tx, customer, user, None, group, NAME).await?;
                invitation::store::put(tx, customer, user, &self.email).await?;
                let link = links.invite(tx, customer, user, INVITATION_VALIDITY).await?;
                Some(FirstSecret::Link(link.url))
            }
        };
        tracing::info!(customer.id = %customer, "made the first customer and its administrator");
        Ok(secret.map(|secret| FirstLogin { email: self.email.clone(), secret }))
    }

    async fn make_administrator(
        &self,
        tx: &mut PgTransaction<'_>,
        links: &PasswordLinks,
        customer: CustomerId,
        group: UserGroupId,
        password: &SecretString,
    ) -> Result<(), Fault> {
        let hash = links.passwords.turn()?.hash(password.clone()).await?;
        let (account, user) = (AccountId::new(), UserId::new());
        account::store::insert(tx, account, &self.email, &hash).await?;
        membership::store::insert(tx, customer, user, Some(account), group, NAME).await
    }
}

fn operator(name: &str) -> CustomerInput {
    CustomerInput {
        name: name.to_owned(),
        subdomain: "operator".to_owned(),
        ..CustomerInput::default()
    }
}
