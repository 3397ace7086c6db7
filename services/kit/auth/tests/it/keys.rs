//! Keys that change at run time.

use std::time::{Duration, Instant};

use anyhow::Result;
use assay_proto::Fault;
use assay_testkit::eventually;

use crate::world::{Identity, grant, issuer};

#[tokio::test]
async fn a_new_key_is_read_when_its_first_token_arrives() -> Result<()> {
    let identity = Identity::start().await?;
    let (_runtime, verifier) = identity.ready_program().await?;
    let new = issuer()?;
    identity.publish(&[&new, &identity.issuer])?;
    let token = new.issue(grant())?;
    // Keys are read at most once a second. Until then, the token is rejected at once.
    let (answer, waited) = eventually("keys to be read", || async {
        let (reads, started) = (identity.key_reads(), Instant::now());
        let answer = verifier.verify(&token).await;
        (identity.key_reads() > reads).then(|| (answer, started.elapsed()))
    })
    .await;
    answer?;
    assert!(waited < Duration::from_secs(1));
    verifier.verify(&identity.issuer.issue(grant())?).await?;
    Ok(())
}

#[tokio::test]
async fn forged_key_ids_are_rejected_without_delay_or_load_on_identity() -> Result<()> {
    let identity = Identity::start().await?;
    let (_runtime, verifier) = identity.ready_program().await?;
    let reads = identity.key_reads();

    let (started, mut slowest) = (Instant::now(), Duration::ZERO);
    while started.elapsed() < Duration::from_millis(2500) {
        let token = issuer()?.issue(grant())?;
        let sent = Instant::now();
        let answer = verifier.verify(&token).await;
        assert!(matches!(answer, Err(Fault::Unauthenticated)), "{answer:?}");
        slowest = slowest.max(sent.elapsed());
    }
    assert!(slowest < Duration::from_millis(500), "{slowest:?}");
    let reads = identity.key_reads() - reads;
    assert!((1..=3).contains(&reads), "{reads} in 2.5 s");
    Ok(())
}

#[tokio::test]
async fn a_valid_token_is_not_rejected_while_a_program_starts() -> Result<()> {
    let identity = Identity::unreachable().await?;
    let (runtime, verifier) = identity.program()?;
    let token = identity.issuer.issue(grant())?;
    let answer = verifier.verify(&token).await;
    assert!(
        matches!(answer, Err(Fault::Unavailable(_))),
        "a valid token is never rejected: {answer:?}"
    );
    assert_eq!(runtime.waits_for(), ["token keys", "token revocations"]);

    identity.serve()?;
    runtime.ready().await;
    verifier.verify(&token).await?;
    Ok(())
}

#[tokio::test]
async fn tokens_are_verified_while_identity_is_unavailable() -> Result<()> {
    let identity = Identity::start().await?;
    let (_runtime, verifier) = identity.ready_program().await?;
    identity.runtime.stop(Duration::from_secs(5)).await?;

    verifier.verify(&identity.issuer.issue(grant())?).await?;
    let unknown = issuer()?.issue(grant())?;
    // The keys were read a moment ago. Later, this key may have been added since.
    eventually("the token may be valid", || async {
        let started = Instant::now();
        let answer = verifier.verify(&unknown).await;
        assert!(started.elapsed() < Duration::from_secs(3));
        matches!(answer, Err(Fault::Unavailable(_))).then_some(())
    })
    .await;
    verifier.verify(&identity.issuer.issue(grant())?).await?;
    Ok(())
}
