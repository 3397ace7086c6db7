//! Events that cannot be applied.

use std::time::Instant;

use assay_testkit::{Broker, eventually};
use serde_json::json;
use sqlx::PgPool;
use uuid::Uuid;

use super::{pipeline::Pipeline, watcher::notifications};
use crate::{
    junit::upload,
    world::{World, create_project, id},
};

const JUNIT: &str = r#"<testsuite name="shop">
    <testcase classname="cart" name="ships" time="1.5"><failure message="lost"/></testcase>
</testsuite>"#;

/// An event without data.
fn poison(id: Uuid, customer: &str) -> Vec<u8> {
    let event = json!({
        "specversion": "1.0", "id": id, "source": "/assay/execution", "subject": "1",
        "type": "io.assay.execution.execution.completed.v1", "time": "2026-11-20T12:00:00Z",
        "datacontenttype": "application/json", "tenantid": customer, "data": {},
    });
    event.to_string().into_bytes()
}

/// Waits until all consumers have failed at least this number of times to apply an event.
async fn wait_for_failures(consumers: [&PgPool; 3], event: Uuid, times: i32) {
    eventually("failures", || async {
        for db in consumers {
            let failures = sqlx::query_scalar(
                "select coalesce(max(failures), 0) from inbox_parked where event_id = $1",
            );
            let failures: i32 = failures.bind(event).fetch_one(db).await.unwrap();
            (failures >= times).then_some(())?;
        }
        Some(())
    })
    .await;
}

/// Sets the number of failures of an event, so that the test needs not wait for the back-off.
async fn set_failures(consumers: [&PgPool; 3], event: Uuid, failures: i32) {
    for db in consumers {
        let update = sqlx::query("update inbox_parked set failures = $2 where event_id = $1");
        update.bind(event).bind(failures).execute(db).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_cannot_be_applied_becomes_a_dead_letter_and_does_not_delay_others() {
    let mut broker = Broker::new().await;
    broker.start().await;
    let world = World::start_with_broker(&broker).await;
    let pipeline = Pipeline::of(&world, &broker.url()).await;
    let api = &world.api;
    let project = create_project(api).await;
    let set = api.post(&format!("{project}/testsets"), json!({"Name": "Cart"})).await.created();
    let set = format!("{project}/testsets/{}", id(&set));
    upload(api, &set, JUNIT).await.created();
    pipeline.settle().await;

    // The consumers of the ends of executions.
    let consumers = [&pipeline.catalog, &pipeline.identity, &pipeline.notification];
    let customer = api.get("/api/management/customers/current").await.ok();
    let subject = format!("assay.execution.{}.execution.completed", id(&customer));
    let [hopeless, stuck] = [Uuid::now_v7(), Uuid::now_v7()];
    pipeline.send(&subject, b"{".to_vec()).await;
    for event in [hopeless, stuck] {
        pipeline.send(&subject, poison(event, id(&customer))).await;
        wait_for_failures(consumers, event, 1).await;
    }
    // The next attempt of one is its fifth and last; the other is retried a minute after its
    // fourth.
    set_failures(consumers, hopeless, 4).await;
    set_failures(consumers, stuck, 3).await;
    let mut letters = dead_letters(consumers, 6).await;
    letters.sort();
    let (no_events, hopeless) = letters.split_at(3);
    let all_start_with =
        |letters: &[String], start| letters.iter().all(|one| one.starts_with(start));
    assert!(all_start_with(no_events, "1 not a valid event: "), "{letters:?}");
    assert!(all_start_with(hopeless, "5 internal error: missing field"), "{letters:?}");
    wait_for_failures(consumers, stuck, 4).await;

    let (before, start) = (notifications(api).await.len(), Instant::now());
    let execution = upload(api, &set, JUNIT).await.created();
    eventually("the effects of later events", || async {
        let shown = api.get(&set).await.ok();
        let count = notifications(api).await.len();
        let is_shown = shown["LastExecutionStatistic"]["ExecutionId"] == execution["Id"];
        (is_shown && count == before + 3).then_some(())
    })
    .await;
    println!("later events took effect after {:?}", start.elapsed());
    assert_eq!(dead_letters(consumers, 6).await.len(), 6, "the other event is still retried");
    world.stop().await;
}

/// Waits for this number of dead letters; returns the attempts and the reason of each.
async fn dead_letters(consumers: [&PgPool; 3], count: usize) -> Vec<String> {
    eventually("dead letters", || async {
        let mut letters = Vec::new();
        for db in consumers {
            let kept = "select failures || ' ' || reason from inbox_parked
                        where given_up_at is not null";
            letters.extend(sqlx::query_scalar::<_, String>(kept).fetch_all(db).await.unwrap());
        }
        (letters.len() == count).then_some(letters)
    })
    .await
}
