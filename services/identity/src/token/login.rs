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
    ///
    /// The attempt counts as failed from the beginning until it has succeeded, so that concurrent guesses do not exceed
    /// a limit together, and a right password beyond a limit gets the same answer as a wrong one.
    pub(super) async fn log_in(
        &self,
        attempt: &Attempt<'_>,
        password: SecretString,
    ) -> Result<String, Fault> {
        // Attempts that wait for their turn do not count yet, so that many with the right password exceed no limit.
        let slot = self.passwords.acquire()?.turn().await?;
        throttle::reserve(&self.db, &self.counts(attempt)).await?;
        let account = account::store::find(&self.db, &attempt.email).await?;
        let hash = account.as_ref().map(|account| account.password_hash.clone());
        let new_hash = match slot.verify(password, hash).await? {
            Verdict::Wrong => return self.reject(attempt, "wrong email or password").await,
            Verdict::Right => None,
            Verdict::Outdated(new) => Some(new),
        };
        let account = account.ok_or(Fault::Unauthenticated)?;
        let issued = self.issue_token(attempt, &account, new_hash).await;
        if !matches!(issued, Err(Fault::Unauthenticated)) {
            self.take_back(attempt).await;
        }
        match issued {
            Err(Fault::Unauthenticated) => self.reject(attempt, "no usable membership").await,
            Err(Fault::Forbidden(reason)) => {
                self.record_rejection(attempt, "the permission Login is missing").await?;
                Err(Fault::Forbidden(reason))
            }
            result => result,
        }
    }

    /// Takes an attempt with the right password off the counters. If that fails, the attempt counts as a failed one.
    async fn take_back(&self, attempt: &Attempt<'_>) {
        let counts = self.counts(attempt);
        let Some(((here, _), others)) = counts.split_first() else { return };
        let taken_back = async {
            let mut tx = begin(&self.db).await?;
            throttle::reset(&mut *tx, here).await?;
            for (subject, _) in others {
                throttle::refund(&mut tx, subject).await?;
            }
            Ok::<_, Fault>(tx.commit().await?)
        };
        if let Err(fault) = taken_back.await {
            tracing::warn!(%fault, "a login with the right password counts as a failed one");
        }
    }

    /// Records a failure, which was counted before. The fault does not reveal its reason.
    async fn reject(&self, attempt: &Attempt<'_>, reason: &'static str) -> Result<String, Fault> {
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

    /// Returns the subjects that count an attempt, with their limits. The first one counts those to the account from
    /// the address.
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
        let actor = Actor { customer, user, address: attempt.address };
        audit::record(&mut tx, actor, Entry::new("LoggedIn")).await?;
        tx.commit().await?;
        Ok(token)
    }
}
