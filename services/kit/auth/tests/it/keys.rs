//! Keys that come and go.

use std::time::{Duration, Instant};

use anyhow::Result;
use assay_proto::Fault;
use assay_testkit::eventually;

use crate::world::{Identity, grant, issuer};

#[tokio::test]
async fn a_key_that_is_new_is_read_when_it_is_first_seen() -> Result<()> {
    let identity = Identity::start().await?;
    let (_runtime, verifier) = identity.ready_program().await?;
    let new = issuer()?;
    identity.publish(&[&new, &identity.issuer])?;
    let token = new.issue(grant())?;
    // Keys are read once a second at most: until then, it is refused at once.
    let (answer, waited) = eventually("keys to be read", || async {
        let (reads, begun) = (identity.key_reads(), Instant::now());
        let answer = verifier.verify(&token).await;
        (identity.key_reads() > reads).then(|| (answer, begun.elapsed()))
    })
    .await;
    answer?;
    assert!(waited < Duration::from_secs(1));
    verifier.verify(&identity.issuer.issue(grant())?).await?;
    Ok(())
}

#[tokio::test]
async fn made_up_keys_are_refused_fast_and_cost_identity_nothing() -> Result<()> {
    let identity = Identity::start().await?;
    let (_runtime, verifier) = identity.ready_program().await?;
    let reads = identity.key_reads();

    let (begun, mut slowest) = (Instant::now(), Duration::ZERO);
    while begun.elapsed() < Duration::from_millis(2500) {
        let token = issuer()?.issue(grant())?;
        let asked = Instant::now();
        let answer = verifier.verify(&token).await;
        assert!(matches!(answer, Err(Fault::Unauthenticated)), "{answer:?}");
        slowest = slowest.max(asked.elapsed());
    }
    assert!(slowest < Duration::from_millis(500), "{slowest:?}");
    let reads = identity.key_reads() - reads;
    assert!((1..=3).contains(&reads), "{reads} in 2.5 s");
    Ok(())
}

#[tokio::test]
async fn a_valid_token_is_not_rejected_while_a_program_starts() -> Result<()> {
    let identity = Identity::away().await?;
    let (runtime, verifier) = identity.program()?;
    let token = identity.issuer.issue(grant())?;
    let answer = verifier.verify(&token).await;
    assert!(
        matches!(answer, Err(Fault::Unavailable(_))),
        "a valid token is never refused: {answer:?}"
    );
    assert_eq!(runtime.waits_for(), ["token keys", "token revocations"]);

    identity.come_back()?;
    runtime.ready().await;
    verifier.verify(&token).await?;
    Ok(())
}

#[tokio::test]
async fn tokens_are_verified_while_identity_is_away() -> Result<()> {
    let identity = Identity::start().await?;
    let (_runtime, verifier) = identity.ready_program().await?;
    identity.runtime.stop(Duration::from_secs(5)).await?;

    verifier.verify(&identity.issuer.issue(grant())?).await?;
    let unknown = issuer()?.issue(grant())?;
    // At first the keys have just been read. Later, this key may have been added since.
    eventually("nobody knows whether the token is valid", || async {
        let begun = Instant::now();
        let answer = verifier.verify(&unknown).await;
        assert!(begun.elapsed() < Duration::from_secs(3));
        matches!(answer, Err(Fault::Unavailable(_))).then_some(())
    })
    .await;
    verifier.verify(&identity.issuer.issue(grant())?).await?;
    Ok(())
}
