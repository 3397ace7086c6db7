//! Initial data: created by the first start, kept by later ones.

use std::time::Duration;

use anyhow::Result;
use assay_identity::FirstSecret;
use assay_proto::{Permission, identity::UserGroup};
use futures::future::{join_all, try_join_all};
use secrecy::ExposeSecret;
use tonic::Code;

use crate::world::{ADMIN, Identity, PASSWORD, Settings, link};

#[tokio::test]
async fn concurrently_starting_replicas_create_one_administrator() -> Result<()> {
    let settings = Settings::new().await?;
    let replicas = try_join_all((0..4).map(|_| Identity::start(&settings))).await?;

    let db = replicas[0].db.clone();
    let first_logins = join_all(replicas.into_iter().map(|replica| replica.first_login)).await;
    let first_logins: Vec<_> = first_logins.into_iter().flatten().collect();
    let [first] = &first_logins[..] else {
        panic!("{} administrators were created", first_logins.len())
    };
    assert_eq!(first.email, "admin@assay.local");
    assert!(matches!(first.secret, FirstSecret::Link(_)), "no password is printed");
    let counts: (i64, i64, i64) = sqlx::query_as(
        "select (select count(*) from customer), (select count(*) from membership),
                (select count(*) from signing_key)",
    )
    .fetch_one(&db)
    .await?;
    assert_eq!(counts, (1, 1, 1));
    Ok(())
}

#[tokio::test]
async fn concurrently_starting_replicas_create_the_schema() -> Result<()> {
    let settings = Settings::with_empty_database().await?.with_administrator();
    let replicas = try_join_all((0..2).map(|_| Identity::start(&settings))).await?;
    for replica in &replicas {
        replica.login(ADMIN, PASSWORD).await?;
    }
    assert_eq!(replicas[0].keys().await?, replicas[1].keys().await?);
    Ok(())
}

#[tokio::test]
async fn the_first_administrator_sets_a_password_by_a_single_use_link() -> Result<()> {
    let settings = Settings::new().await?.and("admin-email", ADMIN);
    let mut first = Identity::start(&settings).await?;
    let first_login = (&mut first.first_login).await?;
    let FirstSecret::Link(url) = &first_login.secret else { panic!("{first_login:?}") };
    assert!(!format!("{first_login:?}").contains(url.expose_secret()));
    let (_, token) = link(url.expose_secret())?;
    first.reset(&token, PASSWORD).await?;
    first.login(&first_login.email, PASSWORD).await?;
    first.reset(&token, "another password by now").await.unwrap_err();

    let second = Identity::start(&settings).await?;
    assert!(second.first_login.await.is_err());
    Ok(())
}

#[tokio::test]
async fn a_configured_password_is_not_reported_and_applies_only_to_the_first_start() -> Result<()> {
    let settings = Settings::new().await?.and("admin-email", ADMIN);
    let first = Identity::start(&settings.clone().and("admin-password", PASSWORD)).await?;
    assert!(first.first_login.await.is_err());

    let later = settings.and("admin-password", "another password by now");
    let second = Identity::start(&later).await?;
    second.login(ADMIN, PASSWORD).await?;
    let refused = second.login(ADMIN, "another password by now").await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated);
    Ok(())
}

#[tokio::test]
async fn the_first_administrator_has_all_permissions() -> Result<()> {
    let identity = Identity::new().await?;
    let caller = identity.caller_of(ADMIN).await?;
    for number in 1..=31 {
        assert!(caller.may(Permission::try_from(number)?), "permission {number} is missing");
    }

    let customer = identity.customers().get_current_customer(caller.call(())).await?.into_inner();
    assert_eq!((customer.name.as_str(), customer.subdomain.as_str()), ("Assay", "operator"));
    let permissions = |group: &UserGroup| (group.name.clone(), group.usage_permission.clone());
    let groups: Vec<_> = customer.user_groups.iter().map(permissions).collect();
    assert_eq!(groups[0], ("Administrators".to_owned(), caller.permissions.to_string()));
    assert_eq!(
        groups[1..],
        [
            ("Testers", "Login, Read, Write, Execute, Accept, Reject, UserSettings"),
            ("Viewers", "Login, Read, UserSettings"),
        ]
        .map(|(name, permissions)| (name.to_owned(), permissions.to_owned()))
    );
    Ok(())
}

#[tokio::test]
async fn invalid_credentials_of_the_administrator_fail_the_start() -> Result<()> {
    let settings = Settings::new().await?;
    for (option, value, named) in [
        ("admin-password", "short", "ASSAY_ADMIN_PASSWORD"),
        ("admin-password", "", "ASSAY_ADMIN_PASSWORD"),
        ("admin-email", "nobody", "ASSAY_ADMIN_EMAIL"),
    ] {
        let refused = Identity::launch(&settings.clone().and(option, value)).await;
        let error = refused.err().expect("the start should fail").to_string();
        assert!(error.contains(named), "{error}");
    }
    Ok(())
}

#[tokio::test]
async fn keys_survive_a_restart() -> Result<()> {
    let settings = Settings::new().await?.with_administrator();
    let first = Identity::start(&settings).await?;
    let (keys, token) = (first.keys().await?, first.login(ADMIN, PASSWORD).await?);
    first.runtime.stop(Duration::from_secs(5)).await?;

    let second = Identity::start(&settings).await?;
    assert_eq!(second.keys().await?, keys);
    let caller = second.caller(&token).await?;
    second.customers().get_current_customer(caller.call(())).await?;
    Ok(())
}

#[tokio::test]
async fn the_service_stops_if_signing_keys_cannot_be_decrypted() -> Result<()> {
    assay_testkit::expect_failures();
    let settings = Settings::new().await?.with_administrator();
    Identity::start(&settings).await?;

    let locked_out = Identity::launch(&settings.with_other_encryption_keys()?).await?;
    locked_out.runtime.stopping().cancelled().await;
    let error = locked_out.runtime.stop(Duration::from_secs(5)).await.unwrap_err();
    assert!(format!("{error:#}").contains("signing_key/"), "{error:#}");
    Ok(())
}
