//! Revocation of tokens.

use std::time::{Duration, Instant};

use anyhow::Result;
use assay_auth::{REVOCATIONS, Verifier};
use assay_proto::{CustomerId, Timestamp, identity::Revocation};
use assay_servers::{DataDir, Nats};
use assay_testkit::{eventually, test_dir};

use crate::world::{Identity, grant, now};

fn of_user(user: assay_proto::UserId) -> Revocation {
    Revocation { user_id: Some(user.to_string()), ..Revocation::default() }
}

/// Returns the time until a token is rejected.
async fn rejected_after(verifier: &Verifier, token: &str) -> Duration {
    let started = Instant::now();
    eventually("the token is rejected", || async { verifier.verify(token).await.err() }).await;
    started.elapsed()
}

#[tokio::test]
async fn a_program_is_ready_after_it_has_read_all_revocations() -> Result<()> {
    let identity = Identity::start().await?;
    let (revoked, other) = (grant(), grant());
    let tokens = [identity.issuer.issue(revoked)?, identity.issuer.issue(other)?];
    for _ in 0..9 {
        identity.revoke(of_user(assay_proto::UserId::new()));
    }
    identity.revoke(of_user(revoked.user));

    let (_runtime, verifier) = identity.ready_program().await?;
    assert!(verifier.verify(&tokens[0]).await.is_err());
    verifier.verify(&tokens[1]).await?;
    let later = identity.issuer.issue(revoked)?;
    verifier.verify(&later).await?;
    Ok(())
}

#[tokio::test]
async fn a_token_is_revoked_within_five_seconds_without_nats() -> Result<()> {
    let identity = Identity::start().await?;
    let (_runtime, verifier) = identity.ready_program().await?;
    let (revoked, other) = (grant(), grant());
    let tokens = [identity.issuer.issue(revoked)?, identity.issuer.issue(other)?];
    for token in &tokens {
        verifier.verify(token).await?;
    }

    let customer_id = Some(revoked.customer.to_string());
    identity.revoke(Revocation { customer_id, ..of_user(revoked.user) });
    let took = rejected_after(&verifier, &tokens[0]).await;
    assert!(took < Duration::from_secs(5), "{took:?}");
    verifier.verify(&tokens[1]).await?;
    verifier.verify(&identity.issuer.issue(revoked)?).await?;
    Ok(())
}

#[tokio::test]
async fn a_token_is_revoked_within_a_second_with_nats() -> Result<()> {
    let dir = test_dir()?.join(format!("auth-{}", CustomerId::new()));
    let server = Nats::start(&DataDir::lock(dir)?, None).await?;
    let nats = async_nats::connect(server.url()).await?;
    let identity = Identity::start().await?;
    let (runtime, verifier) = identity.ready_program().await?;
    verifier.listen(&runtime, nats.clone());
    listening(&verifier, &identity, &nats).await?;

    let grant = grant();
    let token = identity.issuer.issue(grant)?;
    verifier.verify(&token).await?;
    identity.revoke(of_user(grant.user));
    nats.publish(REVOCATIONS, "".into()).await?;
    let took = rejected_after(&verifier, &token).await;
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert!(runtime.is_ready(), "the program stays ready");
    server.stop().await
}

#[tokio::test]
async fn a_forged_message_revokes_nothing() -> Result<()> {
    let dir = test_dir()?.join(format!("auth-{}", CustomerId::new()));
    let server = Nats::start(&DataDir::lock(dir)?, None).await?;
    let nats = async_nats::connect(server.url()).await?;
    let identity = Identity::start().await?;
    let (runtime, verifier) = identity.ready_program().await?;
    verifier.listen(&runtime, nats.clone());
    listening(&verifier, &identity, &nats).await?;

    let grant = grant();
    let token = identity.issuer.issue(grant)?;
    for forged in [
        Revocation { issued_until: i64::MAX, ..of_user(grant.user) },
        Revocation { issued_until: i64::MAX, ..Revocation::default() },
    ] {
        nats.publish(REVOCATIONS, serde_json::to_vec(&forged)?.into()).await?;
    }
    // Messages published before have been received by now.
    listening(&verifier, &identity, &nats).await?;
    verifier.verify(&token).await?;
    server.stop().await
}

/// Waits until a message on NATS triggers a read of the revocations.
async fn listening(
    verifier: &Verifier,
    identity: &Identity,
    nats: &async_nats::Client,
) -> Result<()> {
    let grant = grant();
    let token = identity.issuer.issue(grant)?;
    identity.revoke(of_user(grant.user));
    eventually("the verifier listens", || async {
        nats.publish(REVOCATIONS, "".into()).await.ok()?;
        verifier.verify(&token).await.err()
    })
    .await;
    Ok(())
}

#[tokio::test]
async fn a_revocation_applies_to_tokens_with_older_contents() -> Result<()> {
    let identity = Identity::start().await?;
    let read_at = chrono::DateTime::from_timestamp_micros(now()).map(Timestamp);
    let grant = assay_auth::Grant { issued_at: read_at, ..grant() };
    identity.revoke(of_user(grant.user));

    let (_runtime, verifier) = identity.ready_program().await?;
    let token = identity.issuer.issue(grant)?;
    assert!(verifier.verify(&token).await.is_err(), "the contents are older than the revocation");
    Ok(())
}
