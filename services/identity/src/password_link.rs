//! Links by which the owner of an account sets its password: to begin with, or because it is
//! forgotten. Who has the mail has the account, so a link is hard to guess, works once and not for
//! long.

mod rules;
mod store;

use std::{net::IpAddr, time::Duration};

use assay_proto::{Fault, UserId};
use aws_lc_rs::{
    digest::{SHA256, digest},
    rand,
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use secrecy::{ExposeSecret, SecretString};
use sqlx::{PgPool, PgTransaction};

pub(crate) use self::{
    rules::Hosts,
    store::{forget, prune},
};
use crate::{
    account, audit,
    mail::{Mail, Mails},
    membership,
    password::Passwords,
    revocation::{self, Scope},
    throttle::{self, Limit, Subject},
    token,
};

/// How many links an account, and all accounts together from one address, can be sent.
const LINKS_OF_ACCOUNT: Limit = Limit { burst: 10, every: Duration::from_mins(5) };
const LINKS_FROM_ADDRESS: Limit = Limit { burst: 100, every: Duration::from_secs(10) };

/// Makes links, and takes them back.
#[derive(Clone)]
pub(crate) struct PasswordLinks {
    pub(crate) db: PgPool,
    pub(crate) passwords: Passwords,
    pub(crate) mails: Mails,
    pub(crate) hosts: Hosts,
}

/// A link that was just made.
pub(crate) struct Link {
    pub(crate) url: SecretString,
}

impl PasswordLinks {
    /// Has a link sent, if there is such an account. Whether there is, is looked up only when the
    /// mail is sent, so that neither the answer nor its time tells.
    pub(crate) async fn prepare(
        &self,
        email: &str,
        host: &str,
        address: Option<IpAddr>,
    ) -> Result<(), Fault> {
        let Ok(email) = account::rules::email("UserEmail", email) else { return Ok(()) };
        let mut tx = self.db.begin().await?;
        let mut counts = vec![(Subject::of_email("link", email), LINKS_OF_ACCOUNT)];
        counts.extend(address.map(|one| (Subject::of_address("link", one), LINKS_FROM_ADDRESS)));
        let mut allowed = true;
        for (subject, limit) in counts {
            match throttle::count(&mut *tx, &subject, limit).await {
                Ok(()) => {}
                Err(Fault::Busy(_)) => allowed = false,
                Err(fault) => return Err(fault),
            }
        }
        if allowed {
            Mail::password_reset(email, rules::shortened(host), address).enqueue(&mut tx).await?;
        }
        tx.commit().await?;
        self.mails.committed();
        Ok(())
    }

    /// Sets the password of the account that the token was sent to, and kills its tokens.
    pub(crate) async fn reset(
        &self,
        token: &str,
        password: SecretString,
        address: Option<IpAddr>,
    ) -> Result<(), Fault> {
        let hash = hash(token);
        let (_, email) = store::find(&self.db, &hash).await?.ok_or_else(rules::invalid_token)?;
        account::rules::password("NewPassword", password.expose_secret(), &email)?;
        let password_hash = self.passwords.turn()?.hash(password).await?;

        let mut tx = self.db.begin().await?;
        let account = store::take(&mut tx, &hash).await?.ok_or_else(rules::invalid_token)?;
        account::store::lock(&mut tx, account).await?;
        account::store::set_password(&mut tx, account, &password_hash).await?;
        throttle::forget(&mut *tx, &token::throttled_account(&email)).await?;
        audit::record_of_account(&mut tx, account, address, "PasswordReset").await?;
        revocation::record(&mut tx, Scope::of_account(account)).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Makes a link for an account; it voids the one before it.
    pub(crate) async fn make(
        &self,
        tx: &mut PgTransaction<'_>,
        account: UserId,
        host: &str,
        validity: Duration,
    ) -> Result<Link, Fault> {
        let mut token = [0; 32];
        rand::fill(&mut token).map_err(|_| Fault::internal("no random numbers"))?;
        let token = BASE64_URL_SAFE_NO_PAD.encode(token);
        store::put(tx, account, &hash(&token), validity).await?;
        let own = membership::store::of_account(&mut **tx, account).await?;
        let subdomains: Vec<&str> = own.iter().map(|one| one.subdomain.as_str()).collect();
        let origin = self.hosts.origin(host, &subdomains);
        // Behind the `#`, so that it is in no log of a server on the way.
        Ok(Link { url: format!("{origin}/reset-password#token={token}").into() })
    }
}

fn hash(token: &str) -> Vec<u8> {
    digest(&SHA256, token.as_bytes()).as_ref().to_vec()
}
