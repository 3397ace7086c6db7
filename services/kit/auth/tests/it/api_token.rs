//! Verification of API tokens.

use std::time::Duration;

use anyhow::{Context, Result};
use assay_auth::{Grant, LONGEST_EXCHANGED_LIFETIME, Verifier};
use assay_proto::{ApiTokenId, Fault, identity::Revocation};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD as BASE64};
use futures::future::join_all;
use serde_json::Value;

use crate::world::{Identity, grant, issuer};

const SECRET: &str = "assay_0123456789";

fn machine() -> Grant<'static> {
    Grant { api_token: Some(ApiTokenId::new()), ..grant() }
}

fn revocation_of(grant: &Grant<'_>) -> Revocation {
    let api_token_id = grant.api_token.map(|id| id.to_string());
    Revocation { api_token_id, ..Revocation::default() }
}

#[tokio::test]
async fn concurrent_calls_with_an_api_token_share_one_exchange() -> Result<()> {
    let identity = Identity::start().await?;
    let (_runtime, verifier) = identity.ready_program().await?;
    let grant = machine();
    let token = identity.issuer.issue(grant)?;
    identity.accept(SECRET, &token);

    let callers = join_all((0..100).map(|_| verifier.verify(SECRET))).await;
    for caller in callers {
        let caller = caller?;
        assert_eq!((caller.user, caller.api_token), (grant.user, grant.api_token));
        let forwarded = caller.call(()).metadata().get("authorization").cloned();
        assert_eq!(forwarded.unwrap(), format!("Bearer {token}").as_str());
    }
    assert_eq!(identity.exchanges(), 1);
    Ok(())
}

#[tokio::test]
async fn an_unknown_api_token_is_rejected_after_one_exchange() -> Result<()> {
    let identity = Identity::start().await?;
    let (_runtime, verifier) = identity.ready_program().await?;
    for answer in join_all((0..100).map(|_| verifier.verify(SECRET))).await {
        assert!(matches!(answer, Err(Fault::Unauthenticated)), "{answer:?}");
    }
    assert_eq!(identity.exchanges(), 1);
    Ok(())
}

#[tokio::test]
async fn revoking_an_api_token_keeps_others_valid() -> Result<()> {
    let identity = Identity::start().await?;
    let (_runtime, verifier) = identity.ready_program().await?;
    let (revoked, other) = (machine(), machine());
    identity.accept(SECRET, &identity.issuer.issue(revoked)?);
    identity.accept("assay_other", &identity.issuer.issue(other)?);
    verifier.verify(SECRET).await?;
    verifier.verify("assay_other").await?;

    identity.reject(SECRET);
    verifier.revoke(&identity.revoke(revocation_of(&revoked)));
    let answer = verifier.verify(SECRET).await;
    assert!(matches!(answer, Err(Fault::Unauthenticated)), "{answer:?}");
    verifier.verify("assay_other").await?;
    assert_eq!(identity.exchanges(), 3);
    Ok(())
}

#[tokio::test]
async fn an_api_token_is_exchanged_again_when_its_token_expires_or_is_revoked() -> Result<()> {
    let identity = Identity::start().await?;
    let (_runtime, verifier) = identity.ready_program().await?;
    let short = Grant { lifetime: Some(Duration::from_secs(20)), ..machine() };
    identity.accept(SECRET, &identity.issuer.issue(short)?);
    verifier.verify(SECRET).await?;
    let later = identity.issuer.issue(short)?;
    identity.accept(SECRET, &later);
    verifier.verify(SECRET).await?;
    assert_eq!(identity.exchanges(), 2, "it is exchanged again shortly before the token expires");

    // A change of the user's group revokes the token, not the API token.
    let grant = machine();
    identity.accept(SECRET, &identity.issuer.issue(grant)?);
    assert_eq!(verifier.verify(SECRET).await?.user, grant.user);
    let user_id = Some(grant.user.to_string());
    verifier.revoke(&identity.revoke(Revocation { user_id, ..Revocation::default() }));
    identity.accept(SECRET, &identity.issuer.issue(grant)?);
    assert_eq!(verifier.verify(SECRET).await?.user, grant.user);
    assert_eq!(identity.exchanges(), 4);
    Ok(())
}

#[tokio::test]
async fn known_api_tokens_stay_valid_while_identity_is_unavailable() -> Result<()> {
    let identity = Identity::start().await?;
    let (_runtime, verifier) = identity.ready_program().await?;
    identity.accept(SECRET, &identity.issuer.issue(machine())?);
    verifier.verify(SECRET).await?;
    identity.runtime.stop(Duration::from_secs(5)).await?;

    verifier.verify(SECRET).await?;
    let answer = verifier.verify("assay_other").await;
    assert!(matches!(answer, Err(Fault::Unavailable(_))), "{answer:?}");
    Ok(())
}

#[tokio::test]
async fn api_tokens_are_rejected_without_an_identity_service() -> Result<()> {
    let verifier = Verifier::of_keys(&issuer()?.jwks()?)?;
    let answer = verifier.verify(SECRET).await;
    assert!(matches!(answer, Err(Fault::Unauthenticated)), "{answer:?}");
    Ok(())
}

#[test]
fn a_token_of_an_api_token_expires_before_its_revocation_is_forgotten() -> Result<()> {
    let issuer = issuer()?;
    for (grant, lifetime) in
        [(grant(), Duration::from_hours(1)), (machine(), LONGEST_EXCHANGED_LIFETIME)]
    {
        let token = issuer.issue(grant)?;
        let claims = token.split('.').nth(1).context("no claims")?;
        let claims: Value = serde_json::from_slice(&BASE64.decode(claims)?)?;
        let [from, until] = ["iat", "exp"].map(|name| claims[name].as_u64().unwrap());
        assert_eq!(Duration::from_secs(until - from), lifetime);
    }
    Ok(())
}
