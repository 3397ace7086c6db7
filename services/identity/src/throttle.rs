//! How often something may be tried that could be a guess: so often at once, and then at a slow
//! rate. The counts are in the database, so that replicas agree on them.

use std::{net::IpAddr, time::Duration};

use assay_proto::Fault;
use aws_lc_rs::digest::{SHA256, digest};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use sqlx::PgExecutor;

/// What may be tried at once, and how long it takes until it may be tried once more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    pub(crate) burst: u32,
    pub(crate) every: Duration,
}

/// Who tries, or whom it is tried on.
#[derive(Clone, Debug)]
pub(crate) struct Subject(String);

impl Subject {
    /// An account, whether or not it exists, as named by `email`. Emails are not kept: they may be
    /// anything, even a password in the wrong field.
    pub(crate) fn of_email(purpose: &str, email: &str) -> Self {
        let hash = digest(&SHA256, email.to_lowercase().as_bytes());
        Self(format!("{purpose} email {}", BASE64_URL_SAFE_NO_PAD.encode(hash)))
    }

    /// As [`Subject::of_email`], as far as it is tried from that address.
    pub(crate) fn of_email_at(purpose: &str, email: &str, address: Option<IpAddr>) -> Self {
        let Self(email) = Self::of_email(purpose, email);
        Self(format!("{email} from {}", address.map(network).unwrap_or_default()))
    }

    /// An address; of IPv6 the network, since whoever has one address there has all of them.
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

/// Fails if the subject has tried too often; says when it may again.
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

/// Counts a try, and fails if it was one too many.
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
    // Who goes on trying does not wait the longer for it.
    .bind(f64::from(limit.burst) + 1.0)
    .fetch_one(db)
    .await?;
    limit.allow(level)
}

/// Forgets what the subject has tried.
pub(crate) async fn forget(db: impl PgExecutor<'_>, subject: &Subject) -> Result<(), Fault> {
    sqlx::query("delete from throttle where subject = $1").bind(&subject.0).execute(db).await?;
    Ok(())
}

/// Removes what has no effect any more.
pub(crate) async fn prune(db: impl PgExecutor<'_>) -> Result<(), Fault> {
    sqlx::query("delete from throttle where updated_at < now() - interval '1 day'")
        .execute(db)
        .await?;
    Ok(())
}

impl Limit {
    /// Fails if a try that brings the count to `level` is one too many.
    fn allow(self, level: f64) -> Result<(), Fault> {
        let excess = level - f64::from(self.burst);
        if excess <= 0.0 {
            return Ok(());
        }
        // In whole seconds, as `Retry-After` has them.
        let seconds = (excess * self.every.as_secs_f64()).ceil().max(1.0);
        Err(Fault::Busy(Duration::from_secs_f64(seconds)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_tried_too_often_learns_when_to_come_back() {
        let limit = Limit { burst: 3, every: Duration::from_secs(30) };
        for (level, wait) in [(0.5, None), (3.0, None), (3.125, Some(4)), (4.0, Some(30))] {
            let refused = match limit.allow(level) {
                Ok(()) => None,
                Err(Fault::Busy(wait)) => Some(wait.as_secs()),
                Err(fault) => panic!("{fault}"),
            };
            assert_eq!(refused, wait, "at {level}");
        }
    }

    #[test]
    fn an_email_is_the_same_in_any_case_and_a_network_is_one_subject() {
        let email = |email: &str| Subject::of_email("login", email).0;
        assert_eq!(email("Ada@Example.com"), email("ada@example.COM"));
        assert!(!email("ada@example.com").contains("ada"));
        let address = |text: &str| Subject::of_address("login", text.parse().unwrap()).0;
        assert_eq!(address("2001:db8:1:2:3::4"), address("2001:db8:1:2:ffff::1"));
        assert_ne!(address("2001:db8:1:2::1"), address("2001:db8:1:3::1"));
        assert_eq!(address("::ffff:192.0.2.1"), address("192.0.2.1"));
    }
}
