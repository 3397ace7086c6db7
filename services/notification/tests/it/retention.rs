//! Retention of notifications.

use std::time::Duration;

use anyhow::Result;
use assay_notification::prune;
use assay_testkit::eventually;

use crate::{
    receiver::{Behaviour, Receiver},
    webhook::webhook_to,
    world::{World, numbered},
};

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

#[tokio::test]
async fn deleted_webhooks_leave_no_rows() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let receiver = Receiver::start(Behaviour::Answer(204)).await?;
    let kept = world.add_webhook(&user, webhook_to(&receiver.url)).await?;
    for number in 0..3 {
        let webhook = world.add_webhook(&user, webhook_to(&receiver.url)).await?;
        world.create(&user, numbered(number)).await?;
        world.delete_webhook(&user, &webhook.id).await?;
    }
    let year = Duration::from_hours(24 * 365);
    prune(&world.db, year).await?;
    let rows =
        || sqlx::query_scalar::<_, String>("select id::text from webhook").fetch_all(&world.db);
    assert_eq!(rows().await?.len(), 4, "they have just been deleted");
    let later = "update webhook set deleted_at = deleted_at - interval '2 minutes'";
    sqlx::query(later).execute(&world.db).await?;
    eventually("only the other webhook", || async {
        prune(&world.db, year).await.expect("a number");
        (rows().await.expect("ids") == [kept.id.as_str()]).then_some(())
    })
    .await;
    Ok(())
}
