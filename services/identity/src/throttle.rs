//! Throttling of attempts that may be guesses, and of mails to strangers: a burst, then a slow rate. The counters are in
//! the database and shared by all replicas.

use std::{net::IpAddr, time::Duration};

use assay_database::begin;
use assay_proto::{CustomerId, Fault, UserId};
use aws_lc_rs::digest::{SHA256, digest};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use sqlx::{AssertSqlSafe, PgExecutor, PgPool, PgTransaction};

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

    /// A user of a customer.
    pub(crate) fn of_user(purpose: &str, user: UserId) -> Self {
        Self(format!("{purpose} user {user}"))
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

/// The attempts of a subject that count now. `$2` is the time after which one of them no longer does, in seconds. The
/// clock of the database may step back.
const LEVEL: &str = "greatest(0, throttle.level
    - greatest(0, extract(epoch from clock_timestamp() - throttle.updated_at))::float8 / $2)";

/// Counts an attempt of several subjects before it is made, so that concurrent ones do not exceed a limit together. If
/// one of the limits is reached, it fails with the time until the next attempt, and counts nothing.
///
/// Attempts that succeed are taken back with [`reset`] and [`refund`], in a transaction of its own with the subjects in
/// the same order, so that none deadlocks.
pub(crate) async fn reserve(db: &PgPool, attempts: &[(Subject, Limit)]) -> Result<(), Fault> {
    let mut tx = begin(db).await?;
    for (subject, limit) in attempts {
        if !try_count(&mut tx, subject, *limit).await? {
            let level = level(&mut tx, subject, *limit).await?;
            return Err(limit.refusal(level + 1.0));
        }
    }
    Ok(tx.commit().await?)
}

/// Counts an attempt unless it exceeds the limit; returns whether it was counted.
async fn try_count(
    tx: &mut PgTransaction<'_>,
    subject: &Subject,
    limit: Limit,
) -> Result<bool, Fault> {
    let counted = sqlx::query(AssertSqlSafe(format!(
        "insert into throttle (subject, level) values ($1, 1)
         on conflict (subject) do update
         set level = 1 + {LEVEL}, updated_at = clock_timestamp()
         where 1 + {LEVEL} <= $3"
    )));
    let counted = counted.bind(&subject.0).bind(limit.every.as_secs_f64());
    let counted = counted.bind(f64::from(limit.burst)).execute(&mut **tx).await?;
    Ok(counted.rows_affected() > 0)
}

async fn level(tx: &mut PgTransaction<'_>, subject: &Subject, limit: Limit) -> Result<f64, Fault> {
    let level = format!("select {LEVEL} from throttle where subject = $1");
    let level = sqlx::query_scalar(AssertSqlSafe(level)).bind(&subject.0);
    let level: Option<f64> =
        level.bind(limit.every.as_secs_f64()).fetch_optional(&mut **tx).await?;
    Ok(level.unwrap_or_default())
}

/// Takes an attempt back that has succeeded. Without others, nothing is left of it.
pub(crate) async fn refund(tx: &mut PgTransaction<'_>, subject: &Subject) -> Result<(), Fault> {
    let only_one = sqlx::query("delete from throttle where subject = $1 and level <= 1");
    if only_one.bind(&subject.0).execute(&mut **tx).await?.rows_affected() == 0 {
        let one_less = sqlx::query("update throttle set level = level - 1 where subject = $1");
        one_less.bind(&subject.0).execute(&mut **tx).await?;
    }
    Ok(())
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

/// Adds the reason to the fault of a limit that is reached.
pub(crate) fn because(reason: &'static str) -> impl Fn(Fault) -> Fault {
    move |fault| match fault {
        Fault::Busy(after) => Fault::Throttled { reason, after },
        fault => fault,
    }
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
        if level <= f64::from(self.burst) { Ok(()) } else { Err(self.refusal(level)) }
    }

    /// Returns the fault of an attempt with which the counter would be at `level`, with the time to wait.
    fn refusal(self, level: f64) -> Fault {
        let excess = (level - f64::from(self.burst)).max(0.0);
        // `Retry-After` has whole seconds.
        let seconds = (excess * self.every.as_secs_f64()).ceil().max(1.0);
        Fault::Busy(Duration::from_secs_f64(seconds))
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
