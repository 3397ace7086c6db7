//! Links in mails for setting a new password or accepting an invitation. Access to the mailbox
//! grants access to the account, so a link is hard to guess, works once and expires soon.

mod rules;
mod store;

use std::{net::IpAddr, time::Duration};

use assay_auth::{hash_of_secret, new_secret};
use assay_database::begin;
use assay_proto::{AccountId, CustomerId, Fault, UserId};
use secrecy::{ExposeSecret, SecretString};
use sqlx::{PgPool, PgTransaction};

use self::store::Target;
pub(crate) use self::{rules::Hosts, store::prune};
use crate::{
    account, api_token, audit,
    invitation::{self, store::AcceptedInvitation},
    mail::{Mail, MailNotifier},
    membership,
    password::Passwords,
    revocation,
    throttle::{self, Limit, Subject},
    token,
};

/// Limits of mails with links, for an account and for all requests from an address.
const LINKS_OF_ACCOUNT: Limit = Limit { burst: 10, every: Duration::from_mins(5) };
const LINKS_FROM_ADDRESS: Limit = Limit { burst: 100, every: Duration::from_secs(10) };

/// Creates and redeems links.
#[derive(Clone)]
pub(crate) struct PasswordLinks {
    pub(crate) db: PgPool,
    pub(crate) passwords: Passwords,
    pub(crate) mails: MailNotifier,
    pub(crate) hosts: Hosts,
}

impl PasswordLinks {
    /// Queues a mail with a link. The sender looks up the account, so that neither the response nor
    /// its duration reveals whether it exists.
    pub(crate) async fn request_reset(
        &self,
        email: &str,
        host: &str,
        address: Option<IpAddr>,
    ) -> Result<(), Fault> {
        let Ok(email) = account::rules::email("UserEmail", email) else { return Ok(()) };
        let mut tx = begin(&self.db).await?;
        let mut counts = vec![(Subject::of_email("link", &email), LINKS_OF_ACCOUNT)];
        counts.extend(address.map(|one| (Subject::of_address("link", one), LINKS_FROM_ADDRESS)));
        for (subject, limit) in counts {
            match throttle::count(&mut *tx, &subject, limit).await {
                Ok(()) => {}
                // The transaction is rolled back, so that the request does not count: repeated ones would keep the
                // owner of the account from ever getting a link.
                Err(Fault::Busy(_)) => return Ok(()),
                Err(fault) => return Err(fault),
            }
        }
        Mail::password_reset(&email, rules::host_or_empty(host), address).enqueue(&mut tx).await?;
        tx.commit().await?;
        self.mails.notify();
        Ok(())
    }

    /// Sets the password of the account that the token was sent to, and revokes its tokens. The
    /// token of an invitation also accepts the invitation, with a new account if necessary.
    pub(crate) async fn reset(
        &self,
        token: &str,
        password: SecretString,
        address: Option<IpAddr>,
    ) -> Result<(), Fault> {
        let hash = hash_of_secret(token);
        let email = store::email(&self.db, &hash).await?.ok_or_else(rules::invalid_token)?;
        account::rules::password("NewPassword", password.expose_secret(), &email)?;
        let password_hash = self.passwords.acquire()?.hash(password).await?;

        let mut tx = begin(&self.db).await?;
        match store::consume(&mut tx, &hash).await?.ok_or_else(rules::invalid_token)? {
            Target::Account(account) => {
                set_password(&mut tx, account, &password_hash, address).await?;
            }
            Target::Invitation(customer, user) => {
                let invitation = invitation::consume(&mut tx, customer, user).await?;
                let invitation = invitation.ok_or_else(rules::invalid_token)?;
                accept_with_password(&mut tx, &invitation, &password_hash, address).await?;
            }
        }
        for subject in token::throttled(&email, address) {
            throttle::reset(&mut *tx, &subject).await?;
        }
        tx.commit().await?;
        Ok(())
    }

    /// Accepts an invitation with an account that has a password already.
    pub(crate) async fn accept(&self, token: &str, address: Option<IpAddr>) -> Result<(), Fault> {
        let mut tx = begin(&self.db).await?;
        let target = store::consume(&mut tx, &hash_of_secret(token))
            .await?
            .ok_or_else(rules::invalid_token)?;
        let Target::Invitation(customer, user) = target else { return Err(rules::invalid_token()) };
        let invitation = invitation::consume(&mut tx, customer, user).await?;
        let invitation = invitation.ok_or_else(rules::invalid_token)?;
        let account = account::store::lock_shared(&mut tx, &invitation.email).await?;
        let account = account.ok_or_else(rules::password_needed)?;
        let before = invitation::accept(&mut tx, &invitation, account, address).await?;
        invitation::revoke_previous(&mut tx, &invitation, before).await?;
        tx.commit().await?;
        Ok(())
    }

    /// Creates a link for a new password of an account.
    pub(crate) async fn create(
        &self,
        tx: &mut PgTransaction<'_>,
        account: AccountId,
        host: &str,
        validity: Duration,
    ) -> Result<SecretString, Fault> {
        let (token, hash) = new_secret("")?;
        store::insert(tx, Target::Account(account), &hash, validity).await?;
        let memberships = membership::store::of_account(&mut **tx, account).await?;
        let subdomains: Vec<&str> = memberships.iter().map(|one| one.subdomain.as_str()).collect();
        Ok(self.url(host, &subdomains, &token))
    }

    /// Creates a link for accepting an invitation.
    pub(crate) async fn invite(
        &self,
        tx: &mut PgTransaction<'_>,
        customer: CustomerId,
        user: UserId,
        validity: Duration,
    ) -> Result<SecretString, Fault> {
        let (token, hash) = new_secret("")?;
        store::insert(tx, Target::Invitation(customer, user), &hash, validity).await?;
        Ok(self.url("", &[], &token))
    }

    fn url(&self, host: &str, subdomains: &[&str], token: &SecretString) -> SecretString {
        let origin = self.hosts.origin(host, subdomains);
        // Browsers do not send the fragment, so the token is in no log.
        format!("{origin}/reset-password#token={}", token.expose_secret()).into()
    }
}

/// Sets a new password, and revokes all tokens and links of the account.
async fn set_password(
    tx: &mut PgTransaction<'_>,
    account: AccountId,
    password_hash: &str,
    address: Option<IpAddr>,
) -> Result<(), Fault> {
    account::store::lock(tx, account).await?;
    account::store::set_password(tx, account, password_hash).await?;
    store::delete_of_account(tx, account).await?;
    audit::record_of_account(tx, account, address, "PasswordReset").await?;
    revocation::record_of_account(tx, account).await?;
    api_token::store::delete_of_account(tx, account).await
}

/// Accepts an invitation with the account of its mailbox, which is created if necessary, and sets
/// its password. Fails for an account with a usable membership: an invitation is valid for days, longer than a link
/// that may change a password. Other accounts get no such links.
async fn accept_with_password(
    tx: &mut PgTransaction<'_>,
    invitation: &AcceptedInvitation,
    password_hash: &str,
    address: Option<IpAddr>,
) -> Result<(), Fault> {
    if let Some(account) = account::store::lock_shared(tx, &invitation.email).await? {
        if !membership::store::of_account(&mut **tx, account).await?.is_empty() {
            return Err(rules::account_exists());
        }
        let before = invitation::accept(tx, invitation, account, address).await?;
        set_password(tx, account, password_hash, address).await?;
        return invitation::revoke_previous(tx, invitation, before).await;
    }
    let account = AccountId::new();
    account::store::insert(tx, account, &invitation.email, password_hash).await?;
    let before = invitation::accept(tx, invitation, account, address).await?;
    invitation::revoke_previous(tx, invitation, before).await
}
