//! Monitors of several branches.

use anyhow::Result;
use assay_proto::execution::MonitorInput;

use super::{actions, create, recoveries, runs};
use crate::world::World;

#[tokio::test]
async fn a_monitor_of_a_pattern_measures_each_of_its_branches_by_itself() -> Result<()> {
    let world = World::new().await?;
    let features = MonitorInput { branch: Some("feature/*".to_owned()), ..recoveries() };
    let features = create(&world, features).await?;
    runs(&world, "features", "PFPFPF").await?;
    runs(&world, "feature/cart", "PFP").await?;
    runs(&world, "feature/pay", "PFPF").await?;
    assert!(actions(&world, &features).await?.is_empty(), "one recovery on each branch");
    runs(&world, "feature/pay", "PF").await?;
    assert_eq!(actions(&world, &features).await?.len(), 1);
    Ok(())
}
