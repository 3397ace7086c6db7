//! Retention of notifications.

use std::time::Duration;

use anyhow::Result;
use assay_notification::prune;

use crate::world::{World, numbered};

#[tokio::test]
async fn notifications_past_their_retention_are_removed() -> Result<()> {
    let world = World::new().await?;
    let (user, other) = (world.user().await, world.user().await);
    for number in 0..3 {
        world.create(&user, numbered(number)).await?;
        world.create(&other, numbered(number)).await?;
    }
    let deleted = world.create(&user, numbered(3)).await?;
    world.delete(&user, &deleted.id).await?;
    sqlx::query(
        "update notification set created_at = now() - interval '8 days' where action <> 'Done1'",
    )
    .execute(&world.db)
    .await?;

    let week = Duration::from_hours(24 * 7);
    assert_eq!(prune(&world.db, week).await?, 5);
    assert_eq!(prune(&world.db, week).await?, 0);
    for user in [&user, &other] {
        let remaining = world.list(user).await?;
        assert_eq!(
            remaining.iter().map(|left| left.action.as_str()).collect::<Vec<_>>(),
            ["Done1"]
        );
    }
    Ok(())
}
