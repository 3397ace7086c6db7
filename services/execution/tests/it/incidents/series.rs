//! Incidents of test sets that run on several branches, or no longer.

use anyhow::Result;

use super::{actions, list, run, run_on, twelve};
use crate::world::World;

#[tokio::test]
async fn an_incident_is_ended_by_the_series_that_it_affects() -> Result<()> {
    let world = World::new().await?;
    for _ in 0..3 {
        run_on(&world, "web", "feature", twelve("web", "refused")).await?;
        run_on(&world, "web", "main", twelve("web", "")).await?;
    }
    assert_eq!(actions(&world).await?, ["created"]);
    let [open] = &list(&world).await?[..] else { panic!("not one incident") };
    assert_eq!((open.executions, open.test_sets, open.ended_at), (3, 1, None));
    run_on(&world, "web", "feature", twelve("web", "")).await?;
    assert_eq!(actions(&world).await?, ["created", "ended"]);
    Ok(())
}

#[tokio::test]
async fn an_incident_that_nobody_has_seen_for_a_week_has_ended() -> Result<()> {
    let world = World::new().await?;
    run(&world, "retired", twelve("retired", "refused")).await?;
    let age = "update incident set begun_at = begun_at - interval '8 days',
                      last_seen_at = last_seen_at - interval '8 days'";
    world.change(age).await?;
    run(&world, "web", twelve("web", "refused")).await?;
    assert_eq!(actions(&world).await?, ["created", "created", "ended"]);
    let [new, old] = &list(&world).await?[..] else { panic!("not two incidents") };
    assert_eq!((new.ended_at, new.executions), (None, 1));
    assert!(old.ended_at.is_some());
    assert_eq!(old.ended_by_execution_id, None);
    Ok(())
}
