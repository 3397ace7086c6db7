//! States that several users set.

use anyhow::Result;
use assay_proto::execution::CaseState;
use serde_json::json;

use super::{case_of, change, enable, get, input, set};
use crate::{
    changes::{passed, run},
    known_failures::in_days,
    world::{World, reason},
};

#[tokio::test]
async fn one_of_two_changes_of_the_same_version_wins() -> Result<()> {
    let world = World::new().await?;
    let results: Vec<_> = (0..8).map(|nr| passed(&format!("t{nr}"))).collect();
    let execution = run(&world, "main", json!(results)).await?;
    for nr in 0..8 {
        let case = case_of(&execution, &format!("t{nr}"));
        let enabled = get(&world, &case).await?.data_version;
        let attempt =
            |state| change(&world, &case, input(state, Some(in_days(7))), Some(enabled.clone()));
        let (one, other) = tokio::join!(attempt(CaseState::Muted), attempt(CaseState::Skipped));
        assert_ne!(one.is_ok(), other.is_ok(), "{one:?} {other:?}");
        let (set, refused) = if one.is_ok() { (one?, other) } else { (other?, one) };
        assert_eq!(reason(&refused.unwrap_err()), "stale_data_version");
        assert_eq!(get(&world, &case).await?, set);
    }
    Ok(())
}

#[tokio::test]
async fn a_state_that_was_set_again_has_another_version() -> Result<()> {
    let world = World::new().await?;
    let execution = run(&world, "main", json!([passed("a")])).await?;
    let case = case_of(&execution, "a");
    let first = set(&world, &case, CaseState::Muted).await?;
    enable(&world, &case).await?;
    let again = set(&world, &case, CaseState::Muted).await?;
    assert_ne!(first.data_version, again.data_version);
    let late = input(CaseState::Skipped, Some(in_days(7)));
    let refused = change(&world, &case, late, Some(first.data_version)).await.unwrap_err();
    assert_eq!(reason(&refused), "stale_data_version");
    Ok(())
}
