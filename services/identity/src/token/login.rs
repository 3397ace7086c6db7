//! Logging in by email and password, so that whoever guesses learns nothing and guesses seldom.

use std::{net::IpAddr, time::Duration};

use assay_auth::{Grant, Session};
use assay_proto::Fault;
use assay_runtime::begin;
use secrecy::SecretString;

use super::TokenService;
use crate::{
    account::{self, store::Credentials},
    audit::{self, Actor, Entry},
    membership,
    password::Verdict,
    revocation,
    throttle::{self, Limit, Subject},
};

/// How long it takes until one more login may fail, of an account and from an address.
const OF_ACCOUNT: Duration = Duration::from_secs(30);
const FROM_ADDRESS: Duration = Duration::from_secs(3);

/// How many times as many logins of an account may fail from all addresses together as from one, so
/// that nobody keeps its owner out from a single place.
const ADDRESSES: u32 = 10;

/// How many logins may fail at once; `of_account` is meant of an account from one address.
#[derive(Clone, Copy)]
pub(crate) struct LoginLimits {
    pub(crate) of_account: u32,
    pub(crate) from_address: u32,
}

/// Somebody's try to log in.
pub(super) struct Attempt<'a> {
    /// Empty for what is no email, and so belongs to no account.
    email: &'a str,
    subdomain: Option<String>,
    address: Option<IpAddr>,
}

impl<'a> Attempt<'a> {
    pub(super) fn new(email: &'a str, subdomain: Option<String>, address: Option<IpAddr>) -> Self {
        let email = account::rules::email("Email", email).unwrap_or_default();
        Self { email, subdomain, address }
    }
}

/// Under which names the failed logins of an account are counted: from one address, and from all.
pub(crate) fn throttled(email: &str, address: Option<IpAddr>) -> [Subject; 2] {
    [Subject::of_email_at("login", email, address), Subject::of_email("login", email)]
}

impl TokenService {
    /// A token for the account with that email. What does not exist takes as long to be refused as
    /// a wrong password.
    pub(super) async fn log_in(
        &self,
        attempt: &Attempt<'_>,
        password: SecretString,
    ) -> Result<String, Fault> {
        let turn = self.passwords.turn()?;
        self.check(attempt).await?;
        let account = account::store::find(&self.db, attempt.email).await?;
        let hash = account.as_ref().map(|account| account.password_hash.clone());
        let new_hash = match turn.verify(password, hash).await? {
            Verdict::Wrong => return self.refuse(attempt, "wrong email or password").await,
            Verdict::Right => None,
            Verdict::Outdated(new) => Some(new),
        };
        let account = account.ok_or(Fault::Unauthenticated)?;
        // Those who guess at once do not all come through before the first of them has failed.
        self.check(attempt).await?;
        match self.open(attempt, &account, new_hash).await {
            Err(Fault::Unauthenticated) => self.refuse(attempt, "no customer to work for").await,
            Err(Fault::Forbidden(reason)) => {
                self.record_refusal(attempt, "the permission Login is missing").await?;
                Err(Fault::Forbidden(reason))
            }
            opened => opened,
        }
    }

    /// Fails if too many logins have failed of late.
    async fn check(&self, attempt: &Attempt<'_>) -> Result<(), Fault> {
        for (subject, limit) in self.counts(attempt) {
            throttle::check(&self.db, &subject, limit).await?;
        }
        Ok(())
    }

    /// Counts and records the failure, the same for all causes.
    async fn refuse(&self, attempt: &Attempt<'_>, why: &'static str) -> Result<String, Fault> {
        for (subject, limit) in self.counts(attempt) {
            match throttle::count(&self.db, &subject, limit).await {
                Ok(()) | Err(Fault::Busy(_)) => {}
                Err(fault) => return Err(fault),
            }
        }
        self.record_refusal(attempt, why).await?;
        Err(Fault::Unauthenticated)
    }

    async fn record_refusal(&self, attempt: &Attempt<'_>, why: &'static str) -> Result<(), Fault> {
        let subdomain = attempt.subdomain.as_deref();
        audit::record_refused_login(&self.db, attempt.email, subdomain, attempt.address, why).await
    }

    fn counts(&self, attempt: &Attempt<'_>) -> Vec<(Subject, Limit)> {
        let of_account = Limit { burst: self.limits.of_account, every: OF_ACCOUNT };
        let from_anywhere =
            Limit { burst: of_account.burst.saturating_mul(ADDRESSES), ..of_account };
        let from_address = Limit { burst: self.limits.from_address, every: FROM_ADDRESS };
        let [here, anywhere] = throttled(attempt.email, attempt.address);
        let mut counts = vec![(here, of_account), (anywhere, from_anywhere)];
        counts.extend(
            attempt.address.map(|address| (Subject::of_address("login", address), from_address)),
        );
        counts
    }

    /// Chooses the customer and makes the token, once the password was right.
    async fn open(
        &self,
        attempt: &Attempt<'_>,
        account: &Credentials,
        new_hash: Option<String>,
    ) -> Result<String, Fault> {
        let (id, revision) = (account.id, account.password_revision);
        let mut tx = begin(&self.db).await?;
        let issued_at = revocation::date_token(&mut tx).await?;
        // The password may be another one by now.
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
            lifetime: Some(self.session_lifetime),
            ..grant
        })?;

        membership::store::record_login(&mut tx, customer, user).await?;
        if let Some(hash) = new_hash {
            account::store::replace_hash(&mut tx, id, revision, &hash).await?;
        }
        let [here, _] = throttled(attempt.email, attempt.address);
        throttle::forget(&mut *tx, &here).await?;
        let actor = Actor { customer, user, address: attempt.address };
        audit::record(&mut tx, actor, Entry::new("LoggedIn")).await?;
        tx.commit().await?;
        Ok(token)
    }
}
