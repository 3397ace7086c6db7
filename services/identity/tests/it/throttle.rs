//! Limits of failed logins.

use std::net::IpAddr;

use anyhow::Result;
use assay_auth::anonymous_from;
use assay_proto::identity::{LoginInput, LoginRequest};
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
    let login = LoginInput { email: email.to_owned(), password: "wrong".to_owned() };
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

#[tokio::test]
async fn concurrent_failed_logins_count_towards_the_limit() -> Result<()> {
    let identity = limited().await?;
    let wrong = (0..30).map(|_| identity.login(ADMIN, "wrong"));
    join_all(wrong).await;
    let right = identity.login(ADMIN, PASSWORD).await.unwrap_err();
    assert_eq!(right.code(), Code::ResourceExhausted);
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
