//! Usage of customers that is not the sum of what they have stored.

use anyhow::Result;
use assay_proto::execution::ExecutionMode;

use super::found;
use crate::world::World;

/// Damages of the usage, and a part of the difference.
const DAMAGES: [(&str, &str); 4] = [
    (
        "delete from usage where kind = 'artifacts'",
        "usage of artifacts in bytes is 0, but should be",
    ),
    (
        "insert into usage select customer_id, 'artifacts', 1 << 20 from execution limit 1",
        "usage of artifacts in bytes is",
    ),
    ("update usage set bytes = bytes - 1 where kind = 'staged'", "usage of staged in bytes is"),
    (
        "insert into usage select customer_id, 'keys', -5 from execution limit 1",
        "usage of keys in bytes is",
    ),
];

#[tokio::test]
async fn usage_that_is_not_the_sum_of_what_is_stored_is_found_and_repaired() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let mut request = world.start_request(ExecutionMode::External);
    request.idempotency_key = Some("nightly".to_owned());
    let execution = world.start_by(request).await?;
    world.upload_file(&execution.id, "run.log").await?;
    let launch = world.start_launch("Nightly").await?;
    launch.test("pays", "PASSED").await?;
    // The log of a test that an engine runs counts as an artifact.
    world
        .change(
            "insert into live_log_chunk (customer_id, lease_id, start, content)
             select customer_id, gen_random_uuid(), 0, 'running' from execution limit 1",
        )
        .await?;
    assert_eq!(found(&world).await?, [""; 0]);

    for (damage, expected) in DAMAGES {
        world.change(damage).await?;
        let found = found(&world).await?;
        let [difference] = &found[..] else { panic!("{damage}: {found:#?}") };
        assert!(difference.contains(expected), "{damage}: {difference}");
        assert!(assay_execution::rebuild(&world.db).await? > 0, "repairs nothing: {damage}");
        assert_eq!(world.differences().await?, 0, "{damage}");
    }
    Ok(())
}

#[tokio::test]
async fn a_customer_who_has_stored_nothing_is_found_if_usage_is_counted() -> Result<()> {
    let world = World::new().await?;
    world.change("insert into usage values (gen_random_uuid(), 'artifacts', 7)").await?;
    let found = found(&world).await?;
    let [difference] = &found[..] else { panic!("{found:#?}") };
    assert!(difference.starts_with("customer "), "{difference}");
    assert!(difference.ends_with("usage of artifacts in bytes is 7, but should be 0"));

    assert_eq!(assay_execution::rebuild(&world.db).await?, 1);
    assert_eq!(world.count("select coalesce(sum(bytes), 0)::bigint from usage").await?, 0);
    Ok(())
}
