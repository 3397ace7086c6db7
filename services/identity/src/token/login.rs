//! Login by email address and password. Failures are throttled and do not reveal their cause.

use std::{borrow::Cow, net::IpAddr, time::Duration};

use assay_auth::{Grant, Session};
use assay_database::begin;
use assay_proto::Fault;
use secrecy::SecretString;
use sqlx::PgPool;

use crate::{
    account::{self, store::Credentials},
    audit::{self, Actor, Entry},
    config::LoginConfig,
    membership,
    password::{Passwords, Verdict},
    revocation,
    signing_key::Keys,
    throttle::{self, Limit, Subject},
};

/// Time after which another login may fail, for an account and for an address.
const OF_ACCOUNT: Duration = Duration::from_secs(30);
const FROM_ADDRESS: Duration = Duration::from_secs(3);

/// Factor between the limits of failed logins to an account from all addresses and from one: an
/// attacker with one address cannot lock the owner out.
const ADDRESSES: u32 = 10;

/// An attempt to log in.
pub(super) struct Attempt<'a> {
    /// Empty if the email address is not valid.
    email: Cow<'a, str>,
    subdomain: Option<String>,
    address: Option<IpAddr>,
}

impl<'a> Attempt<'a> {
    pub(super) fn new(email: &'a str, subdomain: Option<String>, address: Option<IpAddr>) -> Self {
        let email = account::rules::email("Email", email).unwrap_or_default();
        Self { email, subdomain, address }
    }
}

/// Returns the subjects that count failed logins to an account: from one address, and from all.
pub(crate) fn throttled(email: &str, address: Option<IpAddr>) -> [Subject; 2] {
    [Subject::of_email_at("login", email, address), Subject::of_email("login", email)]
}

/// Logs accounts in by their passwords.
pub(crate) struct PasswordLogin {
    pub(crate) db: PgPool,
    pub(crate) passwords: Passwords,
    pub(crate) keys: Keys,
    pub(crate) config: LoginConfig,
}

impl PasswordLogin {
    /// Returns a token for the account with an email address. The failure for an unknown account
    /// takes as long as that for a wrong password.
    pub(super) async fn log_in(
        &self,
        attempt: &Attempt<'_>,
        password: SecretString,
    ) -> Result<String, Fault> {
        let slot = self.passwords.acquire()?;
        self.check(attempt).await?;
        let account = account::store::find(&self.db, &attempt.email).await?;
        let hash = account.as_ref().map(|account| account.password_hash.clone());
        let new_hash = match slot.verify(password, hash).await? {
            Verdict::Wrong => return self.reject(attempt, "wrong email or password").await,
            Verdict::Right => None,
            Verdict::Outdated(new) => Some(new),
        };
        let account = account.ok_or(Fault::Unauthenticated)?;
        // Concurrent attempts may have failed in the meantime.
        self.check(attempt).await?;
        match self.issue_token(attempt, &account, new_hash).await {
            Err(Fault::Unauthenticated) => self.reject(attempt, "no usable membership").await,
            Err(Fault::Forbidden(reason)) => {
                self.record_rejection(attempt, "the permission Login is missing").await?;
                Err(Fault::Forbidden(reason))
            }
            result => result,
        }
    }

    /// Fails if too many logins have failed recently.
    async fn check(&self, attempt: &Attempt<'_>) -> Result<(), Fault> {
        for (subject, limit) in self.counts(attempt) {
            throttle::check(&self.db, &subject, limit).await?;
        }
        Ok(())
    }

    /// Counts and records a failure. The fault does not reveal its reason.
    async fn reject(&self, attempt: &Attempt<'_>, reason: &'static str) -> Result<String, Fault> {
        for (subject, limit) in self.counts(attempt) {
            match throttle::count(&self.db, &subject, limit).await {
                Ok(()) | Err(Fault::Busy(_)) => {}
                Err(fault) => return Err(fault),
            }
        }
        self.record_rejection(attempt, reason).await?;
        Err(Fault::Unauthenticated)
    }

    async fn record_rejection(
        &self,
        attempt: &Attempt<'_>,
        reason: &'static str,
    ) -> Result<(), Fault> {
        let subdomain = attempt.subdomain.as_deref();
        audit::record_refused_login(&self.db, &attempt.email, subdomain, attempt.address, reason)
            .await
    }

    fn counts(&self, attempt: &Attempt<'_>) -> Vec<(Subject, Limit)> {
        let of_account = Limit { burst: self.config.login_failures_per_account, every: OF_ACCOUNT };
        let from_anywhere =
            Limit { burst: of_account.burst.saturating_mul(ADDRESSES), ..of_account };
        let from_address =
            Limit { burst: self.config.login_failures_per_address, every: FROM_ADDRESS };
        let [here, anywhere] = throttled(&attempt.email, attempt.address);
        let mut counts = vec![(here, of_account), (anywhere, from_anywhere)];
        counts.extend(
            attempt.address.map(|address| (Subject::of_address("login", address), from_address)),
        );
        counts
    }

    /// Chooses the membership and issues a token, after the password was verified.
    async fn issue_token(
        &self,
        attempt: &Attempt<'_>,
        account: &Credentials,
        new_hash: Option<String>,
    ) -> Result<String, Fault> {
        let (id, revision) = (account.id, account.password_revision);
        let mut tx = begin(&self.db).await?;
        let issued_at = revocation::date_token(&mut tx).await?;
        // The password may have changed in the meantime.
        if !account::store::is_unchanged(&mut *tx, id, revision).await? {
            return Err(Fault::Unauthenticated);
        }
        let memberships = membership::store::of_account(&mut *tx, id).await?;
        let chosen = membership::rules::choose(memberships, attempt.subdomain.as_deref())?;
        let (customer, user) = (chosen.customer_id, chosen.id);
        let grant = Grant::new(customer, user, &chosen.display_name, chosen.permissions()?);
        let token = self.keys.issue(Grant {
            issued_at: Some(issued_at),
            session: Some(Session::start()),
            lifetime: Some(self.config.session_lifetime),
            ..grant
        })?;

        membership::store::record_login(&mut tx, customer, user).await?;
        if let Some(hash) = new_hash {
            account::store::replace_hash(&mut tx, id, revision, &hash).await?;
        }
        let [here, _] = throttled(&attempt.email, attempt.address);
        throttle::reset(&mut *tx, &here).await?;
        let actor = Actor { customer, user, address: attempt.address };
        audit::record(&mut tx, actor, Entry::new("LoggedIn")).await?;
        tx.commit().await?;
        Ok(token)
    }
}
