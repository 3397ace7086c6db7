//! Messages that cannot be applied.

use std::time::Instant;

use assay_testkit::{Broker, eventually};
use serde_json::json;
use sqlx::PgPool;
use uuid::Uuid;

use super::{line::Line, watcher::notifications};
use crate::{
    junit::upload,
    world::{World, id, project},
};

const JUNIT: &str = r#"<testsuite name="shop">
    <testcase classname="cart" name="ships" time="1.5"><failure message="lost"/></testcase>
</testsuite>"#;

/// An event that lacks all that it should say.
fn poison(id: Uuid, customer: &str) -> Vec<u8> {
    let event = json!({
        "specversion": "1.0", "id": id, "source": "/assay/execution", "subject": "1",
        "type": "io.assay.execution.execution.completed.v1", "time": "2026-11-20T12:00:00Z",
        "datacontenttype": "application/json", "tenantid": customer, "data": {},
    });
    event.to_string().into_bytes()
}

/// Waits until all consumers have failed so often, or more often, to apply an event.
async fn have_failed(consumers: [&PgPool; 3], event: Uuid, times: i32) {
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

/// Has all consumers believe that they have failed so often, so that this test need not last as long
/// as they are patient.
async fn hurry(consumers: [&PgPool; 3], event: Uuid, failures: i32) {
    for db in consumers {
        let hurry = sqlx::query("update inbox_parked set failures = $2 where event_id = $1");
        hurry.bind(event).bind(failures).execute(db).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_applied_is_put_aside_and_delays_nobody() {
    let mut broker = Broker::new().await;
    broker.start().await;
    let world = World::start_on(&broker).await;
    let line = Line::of(&world, &broker.url()).await;
    let api = &world.api;
    let project = project(api).await;
    let set = api.post(&format!("{project}/testsets"), json!({"Name": "Cart"})).await.created();
    let set = format!("{project}/testsets/{}", id(&set));
    upload(api, &set, JUNIT).await.created();
    line.settle().await;

    // The three that hear of the ends of executions.
    let consumers = [&line.catalog, &line.identity, &line.notification];
    let customer = api.get("/api/management/customers/current").await.ok();
    let subject = format!("assay.execution.{}.execution.completed", id(&customer));
    let [hopeless, stuck] = [Uuid::now_v7(), Uuid::now_v7()];
    line.send(&subject, b"{".to_vec()).await;
    for event in [hopeless, stuck] {
        line.send(&subject, poison(event, id(&customer))).await;
        have_failed(consumers, event, 1).await;
    }
    // One is tried for the fifth time next, the other for the fourth, and then in a minute.
    hurry(consumers, hopeless, 4).await;
    hurry(consumers, stuck, 3).await;
    let mut letters = put_aside(&line, 6).await;
    letters.sort();
    let (no_events, hopeless) = letters.split_at(3);
    let begin_with = |letters: &[String], start| letters.iter().all(|one| one.starts_with(start));
    assert!(begin_with(no_events, "1 this is no event: "), "{letters:?}");
    assert!(begin_with(hopeless, "5 internal error: missing field"), "{letters:?}");
    have_failed(consumers, stuck, 4).await;

    let (before, start) = (notifications(api).await.len(), Instant::now());
    let execution = upload(api, &set, JUNIT).await.created();
    eventually("the effects of what came later", || async {
        let shown = api.get(&set).await.ok();
        let told = notifications(api).await.len();
        let is_shown = shown["LastExecutionStatistic"]["ExecutionId"] == execution["Id"];
        (is_shown && told == before + 2).then_some(())
    })
    .await;
    println!("what came later had its effects after {:?}", start.elapsed());
    assert_eq!(put_aside(&line, 6).await.len(), 6, "the other is still to be tried");
    world.stop().await;
}

/// Waits until there are so many dead letters; says after how many tries and why each is one.
async fn put_aside(line: &Line, count: u64) -> Vec<String> {
    let stream = "ASSAY_DEAD_LETTERS";
    eventually("dead letters", || async {
        let stream = line.jetstream.get_stream(stream).await.ok()?;
        (stream.cached_info().state.messages == count).then_some(())
    })
    .await;
    let header = |letter: &async_nats::jetstream::message::StreamMessage, name| {
        letter.headers.get(name).expect("a header").to_string()
    };
    let letters = line.messages(stream).await;
    let said = letters.iter();
    said.map(|one| format!("{} {}", header(one, "Assay-Tries"), header(one, "Assay-Reason")))
        .collect()
}
