//! Monitors of test cases that run in several test sets, or in large ones.

use anyhow::Result;
use assay_execution::{evaluate_monitors, roll_up};
use assay_proto::execution::{CaseState, MonitorActionKind};
use serde_json::{Value, json};

use super::{create, kinds, recoveries, result, runs, state};
use crate::{
    changes::{failed, passed, run},
    incidents,
    world::World,
};

#[tokio::test]
async fn a_test_recovers_only_in_the_test_set_in_which_it_was_flaky() -> Result<()> {
    use MonitorActionKind::{Muted, Recovered};
    let world = World::new().await?;
    let monitor = create(&world, recoveries()).await?;
    let last = runs(&world, "main", "PFPFPF").await?;
    for _ in 0..4 {
        incidents::run(&world, "web", json!(result("a", 'P'))).await?;
        roll_up(&world.db).await?;
        evaluate_monitors(&world.db).await?;
    }
    assert_eq!(state(&world, &last).await?, CaseState::Muted);
    let last = runs(&world, "main", "PPP").await?;
    assert_eq!(state(&world, &last).await?, CaseState::Enabled);
    assert_eq!(kinds(&world, &monitor).await?, [Muted, Recovered]);
    Ok(())
}

#[tokio::test]
async fn a_muted_test_that_breaks_with_a_thousand_others_is_found() -> Result<()> {
    use MonitorActionKind::{Broken, Muted};
    let world = World::new().await?;
    let monitor = create(&world, recoveries()).await?;
    runs(&world, "main", "PFPFPF").await?;
    let others = (0..1400).map(|nr| {
        let name = format!("other {nr}");
        if nr < 1001 { failed(&name, "gone") } else { passed(&name) }
    });
    let others: Vec<Value> = others.collect();
    for _ in 0..2 {
        run(&world, "main", json!([others.clone(), vec![failed("a", "gone")]].concat())).await?;
        roll_up(&world.db).await?;
        evaluate_monitors(&world.db).await?;
    }
    assert_eq!(kinds(&world, &monitor).await?, [Muted, Broken]);
    Ok(())
}
