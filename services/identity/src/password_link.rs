//! Links by which the owner of a mailbox sets the password of its account, because it is forgotten,
//! or accepts an invitation. Who has the mail has the account, so a link is hard to guess, works once
//! and not for long.

mod rules;
mod store;

use std::{net::IpAddr, time::Duration};

use assay_proto::{AccountId, CustomerId, Fault, UserId};
use assay_runtime::begin;
use aws_lc_rs::{
    digest::{SHA256, digest},
    rand,
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use secrecy::{ExposeSecret, SecretString};
use sqlx::{PgPool, PgTransaction};

use self::store::Target;
pub(crate) use self::{rules::Hosts, store::prune};
use crate::{
    account, api_token, audit,
    invitation::{self, store::Taken},
    mail::{Mail, Mails},
    membership,
    password::Passwords,
    revocation,
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
        let mut tx = begin(&self.db).await?;
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

    /// Sets the password of the account that the token was sent to, and kills what was proven by the
    /// old one. With the token of an invitation, accepts that too; the account may be a new one.
    pub(crate) async fn reset(
        &self,
        token: &str,
        password: SecretString,
        address: Option<IpAddr>,
    ) -> Result<(), Fault> {
        let hash = hash(token);
        let email = store::email(&self.db, &hash).await?.ok_or_else(rules::invalid_token)?;
        account::rules::password("NewPassword", password.expose_secret(), &email)?;
        let password_hash = self.passwords.turn()?.hash(password).await?;

        let mut tx = begin(&self.db).await?;
        match store::take(&mut tx, &hash).await?.ok_or_else(rules::invalid_token)? {
            Target::Account(account) => {
                set_password(&mut tx, account, &password_hash, address).await?;
            }
            Target::Invitation(customer, user) => {
                let offer = invitation::store::take(&mut tx, customer, user).await?;
                let offer = offer.ok_or_else(rules::invalid_token)?;
                accept_with(&mut tx, &offer, &password_hash, address).await?;
            }
        }
        for subject in token::throttled(&email, address) {
            throttle::forget(&mut *tx, &subject).await?;
        }
        tx.commit().await?;
        Ok(())
    }

    /// Accepts an invitation with an account that has a password already.
    pub(crate) async fn accept(&self, token: &str, address: Option<IpAddr>) -> Result<(), Fault> {
        let mut tx = begin(&self.db).await?;
        let target = store::take(&mut tx, &hash(token)).await?.ok_or_else(rules::invalid_token)?;
        let Target::Invitation(customer, user) = target else { return Err(rules::invalid_token()) };
        let offer = invitation::store::take(&mut tx, customer, user).await?;
        let offer = offer.ok_or_else(rules::invalid_token)?;
        let account = account::store::hold(&mut tx, &offer.email).await?;
        let account = account.ok_or_else(rules::password_needed)?;
        invitation::accept(&mut tx, &offer, account, address).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Makes a link for an account.
    pub(crate) async fn make(
        &self,
        tx: &mut PgTransaction<'_>,
        account: AccountId,
        host: &str,
        validity: Duration,
    ) -> Result<Link, Fault> {
        let token = generate()?;
        store::insert(tx, Target::Account(account), &hash(&token), validity).await?;
        let own = membership::store::of_account(&mut **tx, account).await?;
        let subdomains: Vec<&str> = own.iter().map(|one| one.subdomain.as_str()).collect();
        Ok(self.link(host, &subdomains, &token))
    }

    /// Makes a link by which the owner of an invited mailbox accepts.
    pub(crate) async fn invite(
        &self,
        tx: &mut PgTransaction<'_>,
        customer: CustomerId,
        user: UserId,
        validity: Duration,
    ) -> Result<Link, Fault> {
        let token = generate()?;
        store::insert(tx, Target::Invitation(customer, user), &hash(&token), validity).await?;
        Ok(self.link("", &[], &token))
    }

    fn link(&self, host: &str, subdomains: &[&str], token: &str) -> Link {
        let origin = self.hosts.origin(host, subdomains);
        // Behind the `#`, so that it is in no log of a server on the way.
        Link { url: format!("{origin}/reset-password#token={token}").into() }
    }
}

/// Sets a new password, and kills all that the old one has opened.
async fn set_password(
    tx: &mut PgTransaction<'_>,
    account: AccountId,
    password_hash: &str,
    address: Option<IpAddr>,
) -> Result<(), Fault> {
    account::store::lock(tx, account).await?;
    account::store::set_password(tx, account, password_hash).await?;
    store::delete_of_account(tx, account).await?;
    api_token::store::delete_of_account(tx, account).await?;
    audit::record_of_account(tx, account, address, "PasswordReset").await?;
    revocation::record_of_account(tx, account).await
}

/// Accepts an invitation with the account of its mailbox, which is made if there is none, and sets
/// its password.
async fn accept_with(
    tx: &mut PgTransaction<'_>,
    offer: &Taken,
    password_hash: &str,
    address: Option<IpAddr>,
) -> Result<(), Fault> {
    if let Some(account) = account::store::hold(tx, &offer.email).await? {
        invitation::accept(tx, offer, account, address).await?;
        return set_password(tx, account, password_hash, address).await;
    }
    let account = AccountId::new();
    account::store::insert(tx, account, &offer.email, password_hash).await?;
    invitation::accept(tx, offer, account, address).await
}

fn generate() -> Result<String, Fault> {
    let mut token = [0; 32];
    rand::fill(&mut token).map_err(|_| Fault::internal("no random numbers"))?;
    Ok(BASE64_URL_SAFE_NO_PAD.encode(token))
}

fn hash(token: &str) -> Vec<u8> {
    digest(&SHA256, token.as_bytes()).as_ref().to_vec()
}
