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

/// How often a consumer has failed to apply an event.
async fn failures(db: &PgPool, event: Uuid) -> i32 {
    let failures = sqlx::query_scalar(
        "select coalesce(max(failures), 0) from inbox_failure where event_id = $1",
    );
    failures.bind(event).fetch_one(db).await.unwrap()
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
    // What is no event at all, and one that lacks all that it should say.
    let customer = api.get("/api/management/customers/current").await.ok();
    let subject = format!("assay.execution.{}.execution.completed", id(&customer));
    let poison = Uuid::now_v7();
    let event = json!({
        "specversion": "1.0", "id": poison, "source": "/assay/execution", "subject": "1",
        "type": "io.assay.execution.execution.completed.v1", "time": "2026-11-20T12:00:00Z",
        "datacontenttype": "application/json", "tenantid": id(&customer), "data": {},
    });
    line.send(&subject, b"{".to_vec()).await;
    line.send(&subject, event.to_string().into_bytes()).await;
    // The three that hear of the ends of executions.
    let consumers = [&line.catalog, &line.identity, &line.notification];
    eventually("failures", || async {
        for db in consumers {
            (failures(db, poison).await > 0).then_some(())?;
        }
        Some(())
    })
    .await;

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
    for db in consumers {
        let failures = failures(db, poison).await;
        assert!((1..5).contains(&failures), "not tried any more after {failures} times");
    }
    let letters = put_aside(&line, 3).await;
    assert!(letters.iter().all(|letter| letter.starts_with("1 this is no event")), "{letters:?}");

    // The fifth try would be one and a half minutes after the first; now it is the next.
    for db in consumers {
        let hurry = sqlx::query("update inbox_failure set failures = 4 where event_id = $1");
        hurry.bind(poison).execute(db).await.unwrap();
    }
    let letters = put_aside(&line, 6).await;
    let hopeless = letters.iter().filter(|letter| letter.starts_with("5 internal error: missing"));
    assert_eq!(hopeless.count(), 3, "{letters:?}");
    line.settle().await;
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
