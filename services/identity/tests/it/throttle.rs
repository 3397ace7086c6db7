//! Limits of failed logins.

use std::net::IpAddr;

use anyhow::Result;
use assay_auth::anonymous_from;
use assay_proto::identity::{
    DeleteUserRequest, LoginInput, LoginRequest, UpdateUserRequest, UserInput,
};
use futures::future::join_all;
use tonic::{Code, Status};
use tonic_types::StatusExt;

use crate::world::{ADMIN, Identity, PASSWORD, Settings};

async fn limited() -> Result<Identity> {
    let settings = Settings::new().await?.with_administrator();
    let settings = settings.and("login-failures-per-account", "3");
    Identity::start(&settings.and("login-failures-per-address", "5")).await
}

async fn login_from(identity: &Identity, address: &str, email: &str) -> Result<(), Status> {
    login_with(identity, address, email, "wrong").await
}

async fn login_with(
    identity: &Identity,
    address: &str,
    email: &str,
    password: &str,
) -> Result<(), Status> {
    let login = LoginInput { email: email.to_owned(), password: password.to_owned() };
    let request = LoginRequest { login: Some(login), host: String::new() };
    let address: Option<IpAddr> = address.parse().ok();
    identity.tokens().login(anonymous_from(address, request)).await.map(drop)
}

#[tokio::test]
async fn failed_logins_are_limited_for_known_and_unknown_accounts() -> Result<()> {
    let identity = limited().await?;
    for (index, email) in [ADMIN, "unknown@example.com", "no email"].into_iter().enumerate() {
        let address = format!("192.0.2.{index}");
        for _ in 0..3 {
            let refused = login_from(&identity, &address, email).await.unwrap_err();
            assert_eq!(refused.code(), Code::Unauthenticated);
        }
        let refused = login_from(&identity, &address, &email.to_uppercase()).await.unwrap_err();
        assert_eq!(refused.code(), Code::ResourceExhausted);
        let pause = refused.get_details_retry_info().and_then(|info| info.retry_delay);
        assert!((1..=30).contains(&pause.unwrap().as_secs()), "{pause:?}");
    }
    Ok(())
}

#[tokio::test]
async fn failed_logins_from_one_address_do_not_block_other_addresses() -> Result<()> {
    let identity = limited().await?;
    for _ in 0..10 {
        login_from(&identity, "192.0.2.1", ADMIN).await.unwrap_err();
    }
    identity.login(ADMIN, PASSWORD).await?;
    Ok(())
}

#[tokio::test]
async fn failed_logins_of_an_account_are_limited_across_addresses() -> Result<()> {
    let identity = limited().await?;
    for number in 0..30 {
        let address = format!("198.51.100.{number}");
        let refused = login_from(&identity, &address, ADMIN).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unauthenticated);
    }
    let even_right = identity.login(ADMIN, PASSWORD).await.unwrap_err();
    assert_eq!(even_right.code(), Code::ResourceExhausted);
    Ok(())
}

#[tokio::test]
async fn failed_logins_are_limited_for_each_address() -> Result<()> {
    let identity = limited().await?;
    for number in 0..5 {
        let email = format!("user{number}@example.com");
        let address = format!("2001:db8::{number}");
        let refused = login_from(&identity, &address, &email).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unauthenticated);
    }
    let refused = login_from(&identity, "2001:db8::ffff", "more@example.com").await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    identity.login(ADMIN, PASSWORD).await?;
    Ok(())
}

/// Counts the logins whose passwords were checked; all others exceed a limit.
fn checked<T>(logins: Vec<Result<T, Status>>) -> usize {
    let (checked, refused): (Vec<_>, Vec<_>) = logins
        .into_iter()
        .filter_map(Result::err)
        .map(|refused| refused.code())
        .partition(|code| *code == Code::Unauthenticated);
    assert!(refused.iter().all(|code| *code == Code::ResourceExhausted), "{refused:?}");
    checked.len()
}

#[tokio::test]
async fn concurrent_guesses_of_a_password_do_not_exceed_the_limit_together() -> Result<()> {
    let identity = limited().await?;
    let guesses = join_all((0..30).map(|_| identity.login(ADMIN, "wrong"))).await;
    assert_eq!(checked(guesses), 3);
    let right = identity.login(ADMIN, PASSWORD).await.unwrap_err();
    assert_eq!(right.code(), Code::ResourceExhausted);
    assert!((1..=30).contains(&pause(&right)), "{right:?}");
    Ok(())
}

#[tokio::test]
async fn concurrent_guesses_from_one_address_do_not_exceed_the_limit_together() -> Result<()> {
    let identity = limited().await?;
    let emails: Vec<_> = (0..30).map(|number| format!("user{number}@example.com")).collect();
    let guesses = emails.iter().map(|email| login_from(&identity, "192.0.2.1", email));
    assert_eq!(checked(join_all(guesses).await), 5);
    Ok(())
}

#[tokio::test]
async fn successful_logins_do_not_count() -> Result<()> {
    let identity = limited().await?;
    // More than all addresses may fail.
    for _ in 0..35 {
        login_with(&identity, "192.0.2.1", ADMIN, PASSWORD).await?;
    }
    let counters: i64 =
        sqlx::query_scalar("select count(*) from throttle").fetch_one(&identity.db).await?;
    assert_eq!(counters, 0);
    for _ in 0..3 {
        let refused = login_from(&identity, "192.0.2.1", ADMIN).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unauthenticated);
    }
    Ok(())
}

#[tokio::test]
async fn a_successful_login_resets_the_limit() -> Result<()> {
    let identity = limited().await?;
    for _ in 0..4 {
        for _ in 0..2 {
            let refused = identity.login(ADMIN, "wrong").await.unwrap_err();
            assert_eq!(refused.code(), Code::Unauthenticated);
        }
        identity.login(ADMIN, PASSWORD).await?;
    }
    Ok(())
}

fn pause(refused: &Status) -> u64 {
    let pause = refused.get_details_retry_info().and_then(|info| info.retry_delay);
    pause.expect("a time to wait").as_secs()
}

#[tokio::test]
async fn a_customer_sends_a_limited_number_of_invitations() -> Result<()> {
    let settings = Settings::new().await?.with_administrator();
    let identity = Identity::start(&settings.and("invitations-per-customer", "3")).await?;
    let (acme, other) = (identity.visitor("acme").await?, identity.visitor("other").await?);
    for number in 0..3 {
        identity.user(&acme, &format!("user{number}@example.com"), "Testers").await?;
    }
    for _ in 0..2 {
        let refused = identity.user(&acme, "grace@example.com", "Testers").await.unwrap_err();
        let refused = refused.downcast::<Status>()?;
        assert_eq!(refused.code(), Code::ResourceExhausted);
        assert!(refused.message().contains("too many invitations"), "{refused}");
        assert!((1..=10).contains(&pause(&refused)), "{refused:?}");
    }
    identity.user(&other, "grace@example.com", "Testers").await?;
    let users: i64 = sqlx::query_scalar("select count(*) from membership where customer_id = $1")
        .bind(acme.customer)
        .fetch_one(&identity.db)
        .await?;
    assert_eq!(users, 3, "a refused invitation leaves no user");
    Ok(())
}

#[tokio::test]
async fn a_mailbox_is_invited_a_limited_number_of_times() -> Result<()> {
    let identity = Identity::new().await?;
    let admin = identity.caller_of(ADMIN).await?;
    let mut invited = 0;
    let refused = loop {
        match identity.user(&admin, "Grace@example.com", "Testers").await {
            Ok(user) => {
                let request = DeleteUserRequest { id: user.id };
                identity.users().delete_user(admin.call(request)).await?;
                invited += 1;
                assert!(invited < 30, "the mailbox is flooded");
            }
            Err(refused) => break refused.downcast::<Status>()?,
        }
    };
    assert_eq!(invited, 10);
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(refused.message().contains("invited too often"), "{refused}");
    assert!((1..=300).contains(&pause(&refused)), "{refused:?}");
    identity.user(&admin, "alan@example.com", "Testers").await?;
    Ok(())
}

#[tokio::test]
async fn changes_of_address_count_as_invitations_of_the_mailbox() -> Result<()> {
    let identity = Identity::new().await?;
    let admin = identity.caller_of(ADMIN).await?;
    let user = identity.user(&admin, "grace@example.com", "Testers").await?;
    let mut count = 0;
    let refused = loop {
        let changes = UserInput { email: "victim@example.com".to_owned(), ..UserInput::default() };
        let request = UpdateUserRequest {
            id: user.id.clone(),
            data_version: None,
            changes: Some(changes),
            fields: vec!["Email".to_owned()],
        };
        match identity.users().update_user(admin.call(request)).await {
            Ok(_) => count += 1,
            Err(refused) => break refused,
        }
        // The invitation is withdrawn before the next one.
        sqlx::query("update invitation set email = 'grace@example.com'")
            .execute(&identity.db)
            .await?;
        assert!(count < 30, "the mailbox is flooded");
    };
    assert_eq!((count, refused.code()), (10, Code::ResourceExhausted));
    Ok(())
}
