//! Monitors that are changed while they have muted test cases.

use anyhow::Result;
use assay_proto::execution::{AlarmAction, CaseState, MonitorActionKind, MonitorInput};

use super::{create, kinds, recoveries, runs, state, update};
use crate::world::World;

#[tokio::test]
async fn a_monitor_that_is_changed_lifts_what_it_has_set() -> Result<()> {
    use MonitorActionKind::{Muted, Recovered, Skipped};
    let changes = [
        ("Action", MonitorInput { action: AlarmAction::Skip.into(), ..recoveries() }),
        ("Action", MonitorInput { action: AlarmAction::Notify.into(), ..recoveries() }),
        ("DryRun", MonitorInput { dry_run: true, ..recoveries() }),
    ];
    for (field, change) in changes {
        let world = World::new().await?;
        let monitor = create(&world, recoveries()).await?;
        runs(&world, "main", "PFPFPF").await?;
        let monitor = update(&world, &monitor, change.clone(), field).await?;
        let last = runs(&world, "main", "PP").await?;
        assert_eq!(state(&world, &last).await?, CaseState::Muted, "it has not recovered");
        let last = runs(&world, "main", "P").await?;
        assert_eq!(state(&world, &last).await?, CaseState::Enabled, "{change:?}");
        assert_eq!(kinds(&world, &monitor).await?, [Muted, Recovered]);
        if change.action() == AlarmAction::Skip {
            runs(&world, "main", "FPFPFPF").await?;
            assert_eq!(kinds(&world, &monitor).await?, [Muted, Recovered, Skipped]);
        }
    }
    Ok(())
}
