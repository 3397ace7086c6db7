//! Throttling of attempts that may be guesses, and of mails to strangers: a burst, then a slow rate. The counters are in
//! the database and shared by all replicas.

use std::{net::IpAddr, time::Duration};

use assay_proto::{CustomerId, Fault};
use aws_lc_rs::digest::{SHA256, digest};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use sqlx::PgExecutor;

/// The number of attempts in a burst, and the time after which another one is allowed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    pub(crate) burst: u32,
    pub(crate) every: Duration,
}

/// The source or the target of attempts.
#[derive(Clone, Debug)]
pub(crate) struct Subject(String);

impl Subject {
    /// An account that may not exist, by its email address. Only the hash is stored, because the
    /// text may be anything, even a password in the wrong field.
    pub(crate) fn of_email(purpose: &str, email: &str) -> Self {
        let hash = digest(&SHA256, email.to_lowercase().as_bytes());
        Self(format!("{purpose} email {}", BASE64_URL_SAFE_NO_PAD.encode(hash)))
    }

    /// Like [`Subject::of_email`], for attempts from one address.
    pub(crate) fn of_email_at(purpose: &str, email: &str, address: Option<IpAddr>) -> Self {
        let Self(email) = Self::of_email(purpose, email);
        Self(format!("{email} from {}", address.map(network).unwrap_or_default()))
    }

    /// A customer.
    pub(crate) fn of_customer(purpose: &str, customer: CustomerId) -> Self {
        Self(format!("{purpose} customer {customer}"))
    }

    /// An address, or the /64 network of an IPv6 address, which usually has one owner.
    pub(crate) fn of_address(purpose: &str, address: IpAddr) -> Self {
        Self(format!("{purpose} address {}", network(address)))
    }
}

fn network(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            format!("{a:x}:{b:x}:{c:x}:{d:x}::/64")
        }
    }
}

/// Fails if the limit is reached, with the time until the next attempt.
pub(crate) async fn check(
    db: impl PgExecutor<'_>,
    subject: &Subject,
    limit: Limit,
) -> Result<(), Fault> {
    let level: Option<f64> = sqlx::query_scalar(
        "select level - extract(epoch from now() - updated_at)::float8 / $2
         from throttle where subject = $1",
    )
    .bind(&subject.0)
    .bind(limit.every.as_secs_f64())
    .fetch_optional(db)
    .await?;
    limit.allow(level.unwrap_or_default() + 1.0)
}

/// Counts an attempt. Fails if it exceeds the limit; it counts nevertheless unless the transaction is rolled back.
pub(crate) async fn count(
    db: impl PgExecutor<'_>,
    subject: &Subject,
    limit: Limit,
) -> Result<(), Fault> {
    let level = sqlx::query_scalar(
        "insert into throttle (subject, level) values ($1, 1)
         on conflict (subject) do update
         set level = least($3, 1 + greatest(0,
                throttle.level - extract(epoch from now() - throttle.updated_at)::float8 / $2)),
             updated_at = now()
         returning level",
    )
    .bind(&subject.0)
    .bind(limit.every.as_secs_f64())
    // Further attempts do not extend the wait.
    .bind(f64::from(limit.burst) + 1.0)
    .fetch_one(db)
    .await?;
    limit.allow(level)
}

/// Resets the counter of a subject.
pub(crate) async fn reset(db: impl PgExecutor<'_>, subject: &Subject) -> Result<(), Fault> {
    sqlx::query("delete from throttle where subject = $1").bind(&subject.0).execute(db).await?;
    Ok(())
}

/// Deletes counters that have no effect any more.
pub(crate) async fn prune(db: impl PgExecutor<'_>) -> Result<(), Fault> {
    sqlx::query("delete from throttle where updated_at < now() - interval '1 day'")
        .execute(db)
        .await?;
    Ok(())
}

impl Limit {
    /// Fails if a counter at `level` exceeds the limit.
    fn allow(self, level: f64) -> Result<(), Fault> {
        let excess = level - f64::from(self.burst);
        if excess <= 0.0 {
            return Ok(());
        }
        // `Retry-After` has whole seconds.
        let seconds = (excess * self.every.as_secs_f64()).ceil().max(1.0);
        Err(Fault::Busy(Duration::from_secs_f64(seconds)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceeding_the_limit_returns_the_time_to_wait() {
        let limit = Limit { burst: 3, every: Duration::from_secs(30) };
        for (level, wait) in [(0.5, None), (3.0, None), (3.125, Some(4)), (4.0, Some(30))] {
            let rejected = match limit.allow(level) {
                Ok(()) => None,
                Err(Fault::Busy(wait)) => Some(wait.as_secs()),
                Err(fault) => panic!("{fault}"),
            };
            assert_eq!(rejected, wait, "at {level}");
        }
    }

    #[test]
    fn subjects_ignore_the_case_of_emails_and_unite_ipv6_networks() {
        let email = |email: &str| Subject::of_email("login", email).0;
        assert_eq!(email("Ada@Example.com"), email("ada@example.COM"));
        assert!(!email("ada@example.com").contains("ada"));
        let address = |text: &str| Subject::of_address("login", text.parse().unwrap()).0;
        assert_eq!(address("2001:db8:1:2:3::4"), address("2001:db8:1:2:ffff::1"));
        assert_ne!(address("2001:db8:1:2::1"), address("2001:db8:1:3::1"));
        assert_eq!(address("::ffff:192.0.2.1"), address("192.0.2.1"));
    }
}
