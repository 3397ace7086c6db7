//! Live logs: engines append text, readers follow it, and it becomes an artifact.

use std::time::{Duration, Instant};

use anyhow::Result;
use assay_execution::QuotaConfig;
use assay_proto::Batch as _;
use assay_proto::execution::{
    AppendLiveLogRequest, GetLiveLogRequest, Lease, ListArtifactsRequest, LiveLog, LiveLogInput,
    LiveLogState, UploadArtifactRequest, UploadArtifactTarget,
    artifact_service_client::ArtifactServiceClient, live_log_service_client::LiveLogServiceClient,
};
use assay_testkit::TestUser;
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::json;
use tokio::{task::JoinSet, time::timeout};
use tonic::{Code, Status};

use crate::world::{World, fields, instance, reason};

impl World {
    async fn append(
        &self,
        lease: &str,
        text: &str,
        offset: Option<i64>,
    ) -> Result<LiveLogState, Status> {
        let log = LiveLogInput { text: text.to_owned(), offset };
        let request = AppendLiveLogRequest { lease_id: lease.to_owned(), log: Some(log) };
        let mut logs = LiveLogServiceClient::new(self.execution.clone());
        Ok(logs.append_live_log(self.user.call(request)).await?.into_inner())
    }

    async fn log(&self, lease: &Lease, offset: i64, wait: i32) -> Result<LiveLog, Status> {
        self.log_of(&self.user, lease, None, offset, wait).await
    }

    async fn log_of(
        &self,
        user: &TestUser,
        lease: &Lease,
        seen: Option<&str>,
        offset: i64,
        wait: i32,
    ) -> Result<LiveLog, Status> {
        let request = GetLiveLogRequest {
            project_id: None,
            execution_id: lease.execution_id.clone(),
            test_report_id: lease.test_report_id.clone(),
            lease_id: seen.map(str::to_owned),
            offset: Some(offset),
            wait_in_sec: Some(wait),
        };
        let request = user.caller.call_within(Duration::from_secs(40), request);
        let mut logs = LiveLogServiceClient::new(self.execution.clone());
        Ok(logs.get_live_log(request).await?.into_inner())
    }

    /// Returns the names and sizes of the artifacts of an execution.
    async fn artifacts_of(&self, execution: &str) -> Result<Vec<(String, i64)>> {
        let request = ListArtifactsRequest {
            project_id: self.project.clone(),
            execution_id: execution.to_owned(),
            page: None,
        };
        let mut artifacts = ArtifactServiceClient::new(self.execution.clone());
        let batches = artifacts.list_artifacts(self.user.call(request)).await?.into_inner();
        let batches: Vec<_> = batches.try_collect().await?;
        let entries = batches.into_iter().flat_map(|batch| batch.parse().unwrap());
        Ok(entries.map(|entry| (entry.name, entry.size)).collect())
    }

    async fn leased(&self) -> Result<Lease> {
        self.include(&[("a", 1)]).await?;
        self.dispatch().await?;
        Ok(self.engine().lease_one().await?)
    }
}

#[tokio::test]
async fn a_log_grows_while_the_test_runs_and_becomes_an_artifact() -> Result<()> {
    let world = World::new().await?;
    let lease = world.leased().await?;
    let empty = world.log(&lease, 0, 0).await?;
    assert!(empty.is_running && empty.lease_id.is_none() && empty.text.is_empty());

    assert_eq!(world.append(&lease.id, "one\n", Some(0)).await?.size, 4);
    assert_eq!(world.append(&lease.id, "one\n", Some(0)).await?.size, 4, "a repeated request");
    assert_eq!(world.append(&lease.id, "one\ntwo €\n", Some(0)).await?.size, 12);
    let gap = world.append(&lease.id, "x", Some(13)).await.unwrap_err();
    assert_eq!(reason(&gap), "log_gap");

    let log = world.log(&lease, 0, 0).await?;
    assert_eq!((log.text.as_str(), log.offset, log.next_offset), ("one\ntwo €\n", 0, 12));
    assert_eq!(log.lease_id.as_deref(), Some(lease.id.as_str()));
    assert!(log.is_running && !log.engine.is_empty());
    let end = world.log(&lease, -3, 0).await?;
    assert_eq!((end.text.as_str(), end.offset), ("\n", 11), "a character that is cut is left out");
    assert_eq!(world.log(&lease, 4, 0).await?.text, "two €\n");

    let with_log = json!([{ "InstanceNr": 1, "Result": "Passed", "ExecutionLogUri": "live.log" }]);
    world.engine().report(&lease.id, with_log).await?;
    world.append(&lease.id, "three\n", None).await?;
    world.engine().complete(&lease.id, false).await?;
    let late = world.append(&lease.id, "late", None).await.unwrap_err();
    assert_eq!(reason(&late), "lease_ended");
    let rest = world.log(&lease, 12, 0).await?;
    assert_eq!((rest.text.as_str(), rest.is_running), ("three\n", false));
    world.seal_logs().await?;

    assert_eq!(world.artifacts_of(&lease.execution_id).await?, [("live.log".to_owned(), 18)]);
    let gone = world.log(&lease, 0, 0).await?;
    assert!(!gone.is_running && gone.lease_id.is_none());
    let end = world.log_of(&world.user, &lease, Some(&lease.id), 12, 0).await?;
    assert_eq!((end.text.as_str(), end.is_running), ("three\n", false), "a reader misses no end");

    sqlx::query("update live_log set sealed_at = sealed_at - interval '1 minute'")
        .execute(&world.db)
        .await?;
    world.seal_logs().await?;
    assert_eq!(world.artifacts_of(&lease.execution_id).await?, [("live.log".to_owned(), 18)]);
    let gone = world.log_of(&world.user, &lease, Some(&lease.id), 12, 0).await?;
    assert!(!gone.is_running && gone.lease_id.is_none());
    assert_eq!(world.count("select count(*) from live_log_chunk").await?, 0);
    let used = "select sum(bytes)::bigint from usage where kind = 'artifacts'";
    assert_eq!(world.count(used).await?, 18);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_waits_gets_text_at_once() -> Result<()> {
    let world = World::new().await?;
    let lease = world.leased().await?;
    world.append(&lease.id, "one", None).await?;
    let waits = async { Ok(world.log(&lease, 3, 30).await?) };
    let writes = async {
        let waiting = async || (world.queue.readers() == 1).then_some(());
        assay_testkit::eventually("a waiting reader", waiting).await;
        let begun = Instant::now();
        world.append(&lease.id, "two", None).await?;
        anyhow::Ok(begun)
    };
    let (log, begun) = tokio::try_join!(waits, writes)?;
    assert_eq!((log.text.as_str(), log.offset), ("two", 3));
    assert!(begun.elapsed() < Duration::from_secs(2));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn text_that_is_appended_while_the_lease_ends_is_in_the_artifact() -> Result<()> {
    let world = World::new().await?;
    let lease = world.leased().await?;
    world.append(&lease.id, "one", None).await?;
    let mut appended = assay_database::begin(&world.db).await?;
    for statement in [
        "update live_log set size = 6",
        "insert into live_log_chunk select customer_id, lease_id, 3, 'two' from live_log",
    ] {
        sqlx::query(statement).execute(&mut *appended).await?;
    }
    world.engine().complete(&lease.id, false).await?;
    let waiting = "select count(*) from pg_locks where not granted";
    let commits = async {
        let waits = async || (world.count(waiting).await.unwrap() > 0).then_some(());
        assay_testkit::eventually("a task that waits for the text", waits).await;
        Ok(appended.commit().await?)
    };
    tokio::try_join!(world.seal_logs(), commits)?;
    assert_eq!(world.artifacts_of(&lease.execution_id).await?, [("live.log".to_owned(), 6)]);
    Ok(())
}

#[tokio::test]
async fn the_log_of_another_engine_is_a_log_of_its_own() -> Result<()> {
    let world = World::new().await?;
    let lost = world.leased().await?;
    world.append(&lost.id, "first engine", None).await?;
    world.engine().release(&lost.id).await?;
    let again = world.engine().lease_one().await?;
    world.append(&again.id, "second", None).await?;

    let log = world.log_of(&world.user, &again, Some(&lost.id), 12, 0).await?;
    assert_eq!((log.text.as_str(), log.offset), ("second", 0));
    let refused = world.append(&lost.id, "late", None).await.unwrap_err();
    assert_eq!(reason(&refused), "lease_lost");
    world.seal_logs().await?;
    world.engine().report(&again.id, json!([instance(1, "Passed")])).await?;
    world.engine().complete(&again.id, false).await?;
    world.seal_logs().await?;
    let files = world.artifacts_of(&lost.execution_id).await?;
    assert_eq!(files, [(format!("live-{}.log", lost.id), 12), ("live.log".to_owned(), 6)]);
    Ok(())
}

#[tokio::test]
async fn a_log_whose_storing_was_interrupted_becomes_one_artifact() -> Result<()> {
    assay_testkit::expect_failures();
    let world = World::new().await?;
    let lease = world.leased().await?;
    world.append(&lease.id, "one", None).await?;
    world.engine().report(&lease.id, json!([instance(1, "Passed")])).await?;
    world.engine().complete(&lease.id, false).await?;
    let refuse = "create function refuse() returns trigger language plpgsql as
                  'begin raise exception ''stuck''; end';
                  create trigger refuse before update of sealed_at on live_log for each row
                  execute function refuse()";
    sqlx::raw_sql(refuse).execute(&world.db).await?;
    world.seal_logs().await.ok();
    let files = world.artifacts_of(&lease.execution_id).await?;
    assert!(files.is_empty() && world.files() == 0, "a log that is not marked: {files:?}");

    world.change("drop trigger refuse on live_log").await?;
    world.seal_logs().await?;
    world.seal_logs().await?;

    assert_eq!(world.artifacts_of(&lease.execution_id).await?, [("live.log".to_owned(), 3)]);
    assert_eq!(world.files(), 1);
    assert_eq!(world.count("select count(*) from stray_file").await?, 0);
    Ok(())
}

/// Number of uploads of one customer that may have bytes in memory at the same time.
const TURNS: i64 = 24;

#[tokio::test(flavor = "multi_thread")]
async fn a_log_does_not_wait_for_the_uploads_of_its_customer() -> Result<()> {
    let world = World::new().await?;
    let lease = world.leased().await?;
    world.append(&lease.id, "one", None).await?;
    let mut uploads = JoinSet::new();
    for nr in 0..TURNS {
        let target = UploadArtifactTarget {
            lease_id: lease.id.clone(),
            name: format!("{nr}.webm"),
            ..UploadArtifactTarget::default()
        };
        let head = UploadArtifactRequest {
            target: Some(target),
            chunk: "x".into(),
            ..UploadArtifactRequest::default()
        };
        let slow = world.user.call(stream::iter([head]).chain(stream::pending()));
        let mut artifacts = ArtifactServiceClient::new(world.execution.clone());
        uploads.spawn(async move {
            artifacts.upload_artifact_of_lease(slow).await?.into_inner().message().await
        });
    }
    let are_arriving = async || {
        let count = world.count("select count(*) from stray_file where size > 0").await.ok()?;
        (count == TURNS).then_some(())
    };
    assay_testkit::eventually("the uploads", are_arriving).await;
    world.engine().release(&lease.id).await?;

    timeout(Duration::from_secs(15), world.seal_logs()).await??;

    let log = (format!("live-{}.log", lease.id), 3);
    assert_eq!(world.artifacts_of(&lease.execution_id).await?, [log]);
    uploads.abort_all();
    Ok(())
}

#[tokio::test]
async fn logs_are_bounded_and_belong_to_a_customer() -> Result<()> {
    let world = World::new().await?;
    let lease = world.leased().await?;
    let long = "x".repeat(65_537);
    let refused = world.append(&lease.id, &long, Some(-1)).await.unwrap_err();
    assert_eq!(fields(&refused), ["Text", "Offset"]);
    for _ in 0..128 {
        world.append(&lease.id, &long[1..], None).await?;
    }
    let full = world.append(&lease.id, "y", None).await?;
    assert!(full.is_full && full.size == 8 << 20);
    let piece = world.log(&lease, 100, 0).await?;
    assert_eq!((piece.text.len(), piece.next_offset), (256 << 10, 100 + (256 << 10)));

    let stranger = world.stranger().await;
    let unknown = world.log_of(&stranger, &lease, None, 0, 0).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
    let unknown = world.append("0", "x", None).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
    Ok(())
}

#[tokio::test]
async fn logs_count_for_the_quota_of_artifacts() -> Result<()> {
    let quota = QuotaConfig { artifacts_gib: 1, ..QuotaConfig::default() };
    let world = World::with_quota(quota).await?;
    sqlx::query("insert into usage values ($1, 'artifacts', 1 << 30)")
        .bind(world.user.customer)
        .execute(&world.db)
        .await?;
    let lease = world.leased().await?;
    let refused = world.append(&lease.id, "one", None).await.unwrap_err();
    assert_eq!(reason(&refused), "quota_exceeded");
    Ok(())
}

#[tokio::test]
async fn a_log_of_very_short_texts_has_few_chunks() -> Result<()> {
    let world = World::new().await?;
    let lease = world.leased().await?;
    let text: String = ('a'..='z').cycle().take(1100).collect();
    for offset in 0..text.len() {
        world.append(&lease.id, &text[offset..=offset], Some(i64::try_from(offset)?)).await?;
    }
    world.append(&lease.id, &"x".repeat(2000), None).await?;
    world.append(&lease.id, "y", None).await?;
    assert_eq!(world.count("select count(*) from live_log_chunk").await?, 4);
    let log = world.log(&lease, 0, 0).await?;
    assert_eq!((&log.text[..1100], log.next_offset), (text.as_str(), 3101));
    assert_eq!(world.log(&lease, 1000, 0).await?.text[..100], text[1000..]);
    let used = "select sum(bytes)::bigint from usage where kind = 'artifacts'";
    assert_eq!(world.count(used).await?, 3101);
    Ok(())
}
