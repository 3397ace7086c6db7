//! A store of artifacts that accepts connections and does not answer, and the age of what waits.

use std::time::{Duration, Instant};

use anyhow::Result;
use assay_execution::{
    ArtifactConfig, Artifacts, FileStoreConfig, Quota, QuotaConfig, age_of_reconciliation,
    age_of_removals, enforce_retention, purge_deleted,
};
use assay_runtime::Runtime;
use tokio::{net::TcpListener, task::JoinSet};

use crate::{
    retention::{completed, set_retention},
    world::World,
};

/// Returns the artifacts in a bucket whose server never answers, until the set is dropped.
async fn hanging(world: &World) -> Result<(Artifacts, JoinSet<()>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let endpoint = format!("http://{}", listener.local_addr()?);
    let mut server = JoinSet::new();
    server.spawn(async move {
        let mut open = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            open.push(stream);
        }
    });
    let file_store = FileStoreConfig {
        artifacts: Some("s3://bucket".to_owned()),
        s3_endpoint: Some(endpoint.parse()?),
        s3_region: "us-east-1".to_owned(),
        s3_access_key_id: Some("key".to_owned()),
        s3_secret_access_key: Some("secret".into()),
        largest_file_mib: 32,
    };
    let config = ArtifactConfig { file_store, ..world.artifact_config.clone() };
    let quota = Quota::new(&world.db, QuotaConfig::default());
    let runtime = Runtime::new("test");
    Ok((Artifacts::open(&runtime, &world.db, &config, quota)?, server))
}

#[tokio::test]
async fn a_store_that_hangs_costs_one_deadline_and_the_age_of_removals_shows_it() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 2)]).await?;
    for _ in 0..3 {
        completed(&world, 31).await?;
    }
    set_retention(&world, 30).await?;
    // Days of test cases are removed although files are not.
    let old = "insert into case_day
               select customer_id, project_id, gen_random_uuid(), '2020-01-01', '', 1, 0, 0, 0, 0, 1,
                      false, id, false
               from execution limit 1";
    sqlx::query(old).execute(&world.db).await?;
    let abandoned = "insert into stray_file
                     select customer_id, id, gen_random_uuid(), now() - interval '2 hours'
                     from execution";
    sqlx::query(abandoned).execute(&world.db).await?;
    let (artifacts, _server) = hanging(&world).await?;
    let begun = Instant::now();
    let (retention, purge) = tokio::join!(
        enforce_retention(&world.db, &artifacts),
        purge_deleted(&world.db, &artifacts),
    );
    assert!(begun.elapsed() < Duration::from_secs(50), "{:?}", begun.elapsed());
    retention.expect_err("the files are not removed");
    purge?;
    assert_eq!(world.count("select count(*) from case_day where day < '2021-01-01'").await?, 0);
    let age = age_of_removals().seconds(&world.db).await?;
    assert!((3600.0..3700.0).contains(&age), "{age} s");

    // The store is back.
    enforce_retention(&world.db, world.artifacts_store()).await?;
    purge_deleted(&world.db, world.artifacts_store()).await?;
    assert!(age_of_removals().seconds(&world.db).await?.abs() < 0.1);
    Ok(())
}

#[tokio::test]
async fn the_age_of_reconciliation_is_that_of_the_oldest_deadline_that_has_passed() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    world.start().await?;
    let age = async || age_of_reconciliation().seconds(&world.db).await;
    assert!(age().await?.abs() < 0.1);
    sqlx::query("update execution set deadline = now() - interval '1 hour'")
        .execute(&world.db)
        .await?;
    assert!((3600.0..3700.0).contains(&age().await?));
    world.reconcile().await?;
    assert!(age().await?.abs() < 0.1);
    Ok(())
}
