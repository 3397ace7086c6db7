//! Logins.

use std::time::{Duration, Instant};

use anyhow::Result;
use assay_proto::Permission;
use futures::future::join_all;
use tonic::Code;

use crate::world::{ADMIN, Identity, PASSWORD, Settings};

#[tokio::test]
async fn the_email_of_a_login_is_case_insensitive() -> Result<()> {
    let identity = Identity::new().await?;
    for email in [ADMIN, "ada@example.com", "ADA@EXAMPLE.COM", "  ada@Example.com\n"] {
        identity.login(email, PASSWORD).await?;
    }
    Ok(())
}

#[tokio::test]
async fn all_failed_logins_get_the_same_answer() -> Result<()> {
    let identity = Identity::new().await?;
    let admin = identity.caller_of(ADMIN).await?;
    identity.user(&admin, "invited@example.com", "Testers").await?;
    identity.account("left@example.com").await?;

    let mut seen = Vec::new();
    for (email, password) in [
        (ADMIN, "wrong"),
        (ADMIN, "Correct horse battery staple"),
        ("unknown@example.com", PASSWORD),
        ("invited@example.com", PASSWORD),
        ("left@example.com", PASSWORD),
        ("no email", PASSWORD),
        ("nul\0@example.com", PASSWORD),
    ] {
        let status = identity.login(email, password).await.unwrap_err();
        assert_eq!(status.code(), Code::Unauthenticated, "{email} {password}");
        seen.push((status.message().to_owned(), status.details().to_vec()));
    }
    seen.dedup();
    assert_eq!(seen.len(), 1, "{seen:?}");
    for (email, password, missing) in [(ADMIN, "", "Password"), ("", PASSWORD, "Email")] {
        let status = identity.login(email, password).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        assert!(status.message().contains(missing), "{}", status.message());
    }
    Ok(())
}

#[tokio::test]
async fn the_duration_of_a_login_does_not_reveal_whether_an_account_exists() -> Result<()> {
    const ROUNDS: usize = 64;
    let settings = Settings::new().await?.with_administrator();
    let identity = Identity::start(&settings.and("login-failures-per-account", "1000")).await?;
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let nobody = format!("unknown{round}@example.com");
        let mut logins = [(&mut known, ADMIN), (&mut unknown, &nobody)];
        // The order alternates, so that a warm cache favours neither.
        logins.rotate_left(round % 2);
        for (times, email) in logins {
            let start = Instant::now();
            identity.login(email, "wrong").await.unwrap_err();
            times.push(start.elapsed());
        }
    }
    let pairs = known.iter().zip(&unknown);
    let mut differences: Vec<_> =
        pairs.map(|(known, unknown)| known.as_secs_f64() - unknown.as_secs_f64()).collect();
    differences.sort_by(f64::total_cmp);
    let known_was_slower = differences.iter().filter(|difference| **difference > 0.0).count();
    // By chance alone, the count is outside this range in fewer than one of a million runs.
    let likely = ROUNDS / 2 - 20..=ROUNDS / 2 + 20;
    let difference = differences[ROUNDS / 2].abs();
    assert!(
        likely.contains(&known_was_slower) || difference < 0.002,
        "known accounts were slower in {known_was_slower} of {ROUNDS} rounds, by {difference} s"
    );
    // Without hashing a password for unknown accounts, the ratio is above 5.
    let ratio = median(known).as_secs_f64() / median(unknown).as_secs_f64();
    assert!((0.5..2.0).contains(&ratio), "{ratio}");
    Ok(())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

#[tokio::test]
async fn logins_are_rejected_when_the_queue_is_full() -> Result<()> {
    let settings = Settings::new().await?.with_administrator();
    let identity = Identity::start(&settings.and("login-failures-per-account", "1000")).await?;
    let cores = std::thread::available_parallelism()?.get();
    let attempts = (0..2 * (cores + 64)).map(|_| async {
        let start = Instant::now();
        (identity.login("unknown@example.com", "wrong").await.unwrap_err().code(), start.elapsed())
    });
    let answers = join_all(attempts).await;

    let times = |code| -> Vec<_> {
        answers.iter().filter(|answer| answer.0 == code).map(|answer| answer.1).collect()
    };
    let (checked, refused) = (times(Code::Unauthenticated), times(Code::ResourceExhausted));
    assert_eq!(checked.len() + refused.len(), answers.len());
    assert!(checked.len() >= cores + 64, "only {} were checked", checked.len());
    assert!(median(refused) < median(checked));
    identity.login(ADMIN, PASSWORD).await?;
    Ok(())
}

#[tokio::test]
async fn a_token_names_customer_user_and_permissions() -> Result<()> {
    let identity = Identity::new().await?;
    let customer = identity.customer("acme").await?;
    let account = identity.account("grace@example.com").await?;
    let user = identity.membership(customer, account, "Login, Read, Execute").await?;

    let caller = identity.caller_of("grace@example.com").await?;
    assert_eq!((caller.customer, caller.user, &*caller.name), (customer, user, "Grace Hopper"));
    assert_eq!(caller.permissions.to_string(), "Login, Read, Execute");
    assert!(!caller.may(Permission::Write));
    Ok(())
}

#[tokio::test]
async fn a_login_chooses_the_customer_of_the_host_then_the_last_used_then_the_first() -> Result<()>
{
    let settings = Settings::new().await?.with_administrator().and("base-domain", "assay.example");
    let identity = Identity::start(&settings).await?;
    let (first, second) = (identity.customer("first").await?, identity.customer("second").await?);
    identity.customer("foreign").await?;
    let account = identity.account("grace@example.com").await?;
    for customer in [first, second] {
        identity.membership(customer, account, "Login").await?;
    }

    for (host, chosen) in [
        ("assay.example", first),
        ("second.assay.example:8443", second),
        ("assay.example", second),
        ("foreign.assay.example", second),
        ("first.assay.example.evil.example", second),
        ("FIRST.assay.example", first),
        ("", first),
    ] {
        let token = identity.login_at(host, "grace@example.com", PASSWORD).await?;
        assert_eq!(identity.caller(&token).await?.customer, chosen, "{host}");
    }
    Ok(())
}

#[tokio::test]
async fn an_archived_or_deleted_customer_is_not_chosen() -> Result<()> {
    let identity = Identity::new().await?;
    let (first, second) = (identity.customer("first").await?, identity.customer("second").await?);
    let account = identity.account("grace@example.com").await?;
    for customer in [first, second] {
        identity.membership(customer, account, "Login").await?;
    }

    identity.set(first, "archived = true").await?;
    assert_eq!(identity.caller_of("grace@example.com").await?.customer, second);
    identity.set(second, "deleted_at = now()").await?;
    let refused = identity.login("grace@example.com", PASSWORD).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated);
    Ok(())
}

#[tokio::test]
async fn a_login_needs_the_login_permission() -> Result<()> {
    let identity = Identity::new().await?;
    let customer = identity.customer("acme").await?;
    let account = identity.account("grace@example.com").await?;
    identity.membership(customer, account, "Read").await?;

    let refused = identity.login("grace@example.com", PASSWORD).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    let guess = identity.login("grace@example.com", "wrong").await.unwrap_err();
    assert_eq!(guess.code(), Code::Unauthenticated);
    Ok(())
}

#[tokio::test]
async fn a_login_stores_the_time_of_the_previous_one() -> Result<()> {
    let identity = Identity::new().await?;
    let mut last = None;
    for _ in 0..3 {
        identity.login(ADMIN, PASSWORD).await?;
        let times: (Option<assay_proto::Timestamp>, Option<assay_proto::Timestamp>) =
            sqlx::query_as("select previous_login, last_login from membership")
                .fetch_one(&identity.db)
                .await?;
        assert_eq!(times.0, last);
        assert!(times.1 > last);
        last = times.1;
    }
    Ok(())
}
