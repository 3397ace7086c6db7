//! Incidents whose counts and times are not those of the executions that they affect.

use std::{pin::pin, slice};

use anyhow::Result;
use assay_database::begin;
use assay_testkit::waits_for_lock;

use super::found;
use crate::{
    incidents::{list, run, twelve},
    world::World,
};

/// Damages of the only incident, and the field that differs.
const DAMAGES: [(&str, &str); 5] = [
    ("update incident set executions = executions + 1", "executions is 4, but should be 3"),
    ("update incident set test_sets = 0", "test_sets is 0, but should be 2"),
    ("update incident set begun_at = begun_at - interval '1 day'", "begun_at is"),
    ("update incident set last_seen_at = now() + interval '1 day'", "last_seen_at is"),
    (
        "delete from incident_execution
         where execution_id = (select max(execution_id::text)::uuid from incident_execution)",
        "executions is 3, but should be 2",
    ),
];

#[tokio::test]
async fn incidents_that_do_not_count_their_executions_are_found_and_repaired() -> Result<()> {
    let world = World::new().await?;
    run(&world, "web", twelve("web", "refused")).await?;
    run(&world, "shop", twelve("shop", "no such host")).await?;
    run(&world, "web", twelve("web", "no such host")).await?;
    let [right] = &list(&world).await?[..] else { panic!("not one incident") };
    assert_eq!((right.executions, right.test_sets), (3, 2));
    assert_eq!(found(&world).await?, [""; 0]);

    let [counts @ .., lost] = DAMAGES;
    for (damage, expected) in counts {
        world.change(damage).await?;
        let found = found(&world).await?;
        let [difference] = &found[..] else { panic!("{damage}: {found:#?}") };
        assert!(difference.starts_with(&format!("incident {}: ", right.id)), "{difference}");
        assert!(difference.contains(expected), "{damage}: {difference}");
        assert_eq!(assay_execution::rebuild(&world.db).await?, 1, "{damage}");
        assert_eq!(list(&world).await?, slice::from_ref(right), "{damage}");
    }

    // A lost row counts no more. The execution that it was about may be affected or not.
    let (damage, expected) = lost;
    world.change(damage).await?;
    let found = found(&world).await?;
    assert!(found.iter().any(|one| one.contains(expected)), "{found:#?}");
    assert_eq!(assay_execution::rebuild(&world.db).await?, 1);
    assert_eq!(world.differences().await?, 0);
    Ok(())
}

/// A search locks the open incidents, and changes them later.
#[tokio::test]
async fn a_rebuild_waits_until_a_search_for_incidents_has_ended() -> Result<()> {
    let world = World::new().await?;
    run(&world, "web", twelve("web", "refused")).await?;
    world.change("update incident set executions = 7").await?;
    let mut search = begin(&world.db).await?;
    sqlx::query("select from incident for no key update").execute(&mut *search).await?;

    let mut rebuilt = pin!(assay_execution::rebuild(&world.db));
    waits_for_lock(&world.db, rebuilt.as_mut()).await?;
    sqlx::query("update incident set headline = 'no route'").execute(&mut *search).await?;
    search.commit().await?;
    assert_eq!(rebuilt.await?, 1);
    assert_eq!(list(&world).await?[0].executions, 1);
    Ok(())
}
