//! Pools: each value is that of one test at a time.

use std::{
    collections::HashSet,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use anyhow::{Context, Result};
use assay_auth::{SealConfig, new_seal_key};
use assay_execution::reseal;
use assay_proto::{
    Batch, VariableInput,
    execution::{
        CreatePoolRequest, DeletePoolRequest, GetPoolRequest, Lease, LeaseInput, ListPoolsRequest,
        ListQueuesRequest, Pool, PoolContentInput, PoolInput, PoolValueInput, QueuePool,
        UpdatePoolRequest, engine_service_client::EngineServiceClient,
        pool_service_client::PoolServiceClient,
    },
};
use assay_rpc::grpc::Channel;
use futures::{TryStreamExt, future::try_join_all};
use secrecy::ExposeSecret;
use serde_json::json;
use tonic::{Code, Status};

use crate::world::{World, fields, instance, now, reason};

fn service(world: &World) -> PoolServiceClient<Channel> {
    PoolServiceClient::new(world.execution.clone())
}

fn content(name: &str, content: &str, is_secured: bool) -> PoolContentInput {
    PoolContentInput { name: name.to_owned(), content: content.to_owned(), is_secured }
}

/// Returns a pool whose values each have one content, for any variable.
fn plain(name: &str, values: &[&str]) -> PoolInput {
    let value = |text: &&str| PoolValueInput { id: None, contents: vec![content("", text, false)] };
    PoolInput { name: name.to_owned(), values: values.iter().map(value).collect() }
}

async fn create(world: &World, pool: PoolInput) -> Result<Pool, Status> {
    let request = CreatePoolRequest { project_id: world.project.clone(), pool: Some(pool) };
    Ok(service(world).create_pool(world.user.call(request)).await?.into_inner())
}

async fn get(world: &World, id: &str) -> Result<Pool, Status> {
    let request = GetPoolRequest { project_id: world.project.clone(), id: id.to_owned() };
    Ok(service(world).get_pool(world.user.call(request)).await?.into_inner())
}

async fn update(world: &World, id: &str, changes: PoolInput) -> Result<Pool, Status> {
    let request = UpdatePoolRequest {
        project_id: world.project.clone(),
        id: id.to_owned(),
        data_version: None,
        changes: Some(changes),
        fields: vec!["Name".to_owned(), "Values".to_owned()],
    };
    Ok(service(world).update_pool(world.user.call(request)).await?.into_inner())
}

async fn delete(world: &World, id: &str) -> Result<(), Status> {
    let request = DeletePoolRequest { project_id: world.project.clone(), id: id.to_owned() };
    service(world).delete_pool(world.user.call(request)).await.map(drop)
}

fn pooled(name: &str, pool: &str) -> VariableInput {
    VariableInput {
        name: name.to_owned(),
        pool_name: pool.to_owned(),
        content: "own".to_owned(),
        ..VariableInput::default()
    }
}

/// Returns the content of a variable of the subject of a lease.
fn given(lease: &Lease, name: &str) -> String {
    let variables = lease.subject.iter().flat_map(|subject| &subject.variables);
    let variable = variables.into_iter().find(|variable| variable.name == name);
    variable.map(|variable| variable.content.clone()).unwrap_or_default()
}

#[tokio::test]
async fn parallel_tests_never_have_the_same_value() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let pool = create(&world, plain("accounts", &["ada", "alan", "grace"])).await?;
    world.select_subject_with(vec![pooled("USER", "accounts")]).await?;
    for _ in 0..10 {
        world.dispatch().await?;
    }
    let (used, done, most) = (Mutex::new(HashSet::new()), AtomicUsize::new(0), AtomicUsize::new(0));
    let engine = async || {
        let engine = world.engine();
        while done.load(Ordering::Relaxed) < 10 {
            let Some(lease) = engine.lease(now("", 1)).await?.pop() else { continue };
            let value = given(&lease, "USER");
            {
                let mut used = used.lock().unwrap();
                assert!(used.insert(value.clone()), "{value} is used twice");
                most.fetch_max(used.len(), Ordering::Relaxed);
            }
            engine.report(&lease.id, json!([instance(1, "Passed")])).await?;
            assert!(used.lock().unwrap().remove(&value));
            engine.complete(&lease.id, false).await?;
            done.fetch_add(1, Ordering::Relaxed);
        }
        anyhow::Ok(())
    };
    try_join_all((0..10).map(|_| engine())).await?;

    assert_eq!(done.into_inner(), 10);
    assert!((2..=3).contains(&most.into_inner()), "tests run at the same time");
    assert_eq!(get(&world, &pool.id).await?.in_use, 0);
    assert_eq!(world.differences().await?, 0);
    Ok(())
}

#[tokio::test]
async fn a_killed_engine_returns_its_value_with_its_lease() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1), ("b", 1), ("c", 1)]).await?;
    let pool = create(&world, plain("accounts", &["ada", "alan"])).await?;
    world.select_subject_with(vec![pooled("USER", "accounts")]).await?;
    let execution = world.dispatch().await?;
    let killed = world.engine();
    let leases = killed.lease(now("", 9)).await?;
    let values: HashSet<_> = leases.iter().map(|lease| given(lease, "USER")).collect();
    assert_eq!((leases.len(), values.len()), (2, 2), "as many tests as there are values");
    let engine = world.engine();
    assert!(engine.lease(now("", 9)).await?.is_empty());
    assert_eq!(get(&world, &pool.id).await?.in_use, 2);

    world.change("update lease set expires_at = now() where ended_at is null").await?;
    world.reconcile().await?;

    assert_eq!(get(&world, &pool.id).await?.in_use, 0);
    let leases = engine.lease(now("", 1)).await?;
    assert!(values.contains(&given(&leases[0], "USER")));
    engine.release(&leases[0].id).await?;
    assert_eq!(get(&world, &pool.id).await?.in_use, 0, "a released lease returns its value");

    let lease = engine.lease(now("", 1)).await?.remove(0);
    world.cancel(&execution.id).await?;
    assert_eq!(get(&world, &pool.id).await?.in_use, 1, "its engine is still stopping the test");
    engine.complete(&lease.id, false).await?;
    assert_eq!(get(&world, &pool.id).await?.in_use, 0);
    Ok(())
}

#[tokio::test]
async fn an_engine_that_waits_gets_the_value_that_another_returns() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1), ("b", 1)]).await?;
    create(&world, plain("accounts", &["ada"])).await?;
    world.select_subject_with(vec![pooled("USER", "accounts")]).await?;
    world.dispatch().await?;
    let (first, second) = (world.engine(), world.engine());
    let lease = first.lease(now("", 2)).await?.remove(0);
    let waiting = async {
        let lease = LeaseInput { wait_in_sec: Some(30), ..now("", 2) };
        Ok(second.lease(lease).await?)
    };
    let returning = async {
        assay_testkit::eventually("an engine that waits", async || {
            (world.queue.waiting() > 0).then_some(())
        })
        .await;
        first.complete(&lease.id, false).await?;
        anyhow::Ok(())
    };
    let (leases, ()) = futures::try_join!(waiting, returning)?;
    assert_eq!(leases.iter().map(|lease| given(lease, "USER")).collect::<Vec<_>>(), ["ada"]);
    Ok(())
}

#[tokio::test]
async fn engines_get_secrets_in_clear_and_nobody_else_does() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let contents = vec![
        content("USER", "ada", false),
        content("PASSWORD", "canary-9", true),
        content("", "any", false),
    ];
    let values = vec![PoolValueInput { id: None, contents }];
    let created = create(&world, PoolInput { name: "accounts".to_owned(), values }).await?;
    world
        .select_subject_with(vec![
            pooled("USER", "accounts"),
            VariableInput { is_secured: true, ..pooled("PASSWORD", "accounts") },
            pooled("OTHER", "accounts"),
            pooled("UNKNOWN", "no such pool"),
            pooled("PLAIN", ""),
        ])
        .await?;
    world.dispatch().await?;
    let lease = world.engine().lease(now("", 1)).await?.remove(0);
    let names = ["USER", "PASSWORD", "OTHER", "UNKNOWN", "PLAIN"];
    assert_eq!(names.map(|name| given(&lease, name)), ["ada", "canary-9", "any", "own", "own"]);

    let shown = get(&world, &created.id).await?;
    let contents = |pool: &Pool| -> Vec<String> {
        pool.values[0].contents.iter().map(|content| content.content.clone()).collect()
    };
    assert_eq!(contents(&shown), ["ada", "********", "any"]);
    let leaked = "select count(*) from pool where values::text like '%canary%'";
    assert_eq!(world.count(leaked).await?, 0);

    // The mask keeps the secret, under another key, too.
    let next = new_seal_key("next")?;
    let known = &world.artifact_config.seal.encryption_keys;
    let both = format!("{},{}", next.expose_secret(), known.expose_secret());
    let seal = SealConfig { encryption_keys: both.into() };
    let url = world.database_url.clone().into();
    assert_eq!((reseal(&url, &seal).await?, reseal(&url, &seal).await?), (1, 0));
    let resealed = "select count(*) from pool where values::text like '%\"next.%'";
    assert_eq!(world.count(resealed).await?, 1);
    Ok(())
}

#[tokio::test]
async fn a_value_that_cannot_be_read_fails_its_test_alone() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1), ("b", 1)]).await?;
    let secret = |pin| PoolValueInput { id: None, contents: vec![content("PIN", pin, true)] };
    let values = vec![secret("1234"), secret("5678")];
    create(&world, PoolInput { name: "phones".to_owned(), values }).await?;
    world.select_subject_with(vec![pooled("PIN", "phones")]).await?;
    world.dispatch().await?;
    let damage = "update pool set values = jsonb_set(values, '{0,Contents,0,Content}', '\"x\"')";
    world.change(damage).await?;

    let leases = world.engine().lease(now("", 9)).await?;

    assert_eq!(leases.iter().map(|lease| given(lease, "PIN")).collect::<Vec<_>>(), ["5678"]);
    let failed = "select count(*) from test_report where status = 'EngineExecutionFailure'";
    assert_eq!(world.count(failed).await?, 1);
    Ok(())
}

#[tokio::test]
async fn an_update_keeps_the_values_that_it_names() -> Result<()> {
    let world = World::new().await?;
    let secret = PoolValueInput { id: None, contents: vec![content("PIN", "1234", true)] };
    let values = vec![secret];
    let pool = create(&world, PoolInput { name: "phones".to_owned(), values }).await?;
    let id = pool.values[0].id.clone();
    let kept =
        PoolValueInput { id: Some(id.clone()), contents: vec![content("PIN", "********", true)] };
    let new = PoolValueInput { id: None, contents: vec![content("PIN", "5678", true)] };
    let input = PoolInput { name: "phones".to_owned(), values: vec![new, kept] };
    let changed = update(&world, &pool.id, input).await?;
    assert_eq!(changed.values[1].id, id);
    assert_ne!(changed.values[0].id, id);
    assert_eq!(changed.data_version, "2");

    let renamed = update(&world, &pool.id, plain("tablets", &["a"])).await?;
    assert_eq!(renamed.name, "tablets");
    create(&world, plain("phones", &["a"])).await?;
    let empty = update(&world, &pool.id, plain("phones", &[])).await.unwrap_err();
    assert_eq!(fields(&empty), ["Values"]);
    let taken = update(&world, &pool.id, plain("phones", &["a"])).await.unwrap_err();
    assert_eq!(taken.code(), Code::AlreadyExists);
    let empty = create(&world, plain("others", &[])).await.unwrap_err();
    assert_eq!(fields(&empty), ["Values"]);
    let taken = create(&world, plain("phones", &["a"])).await.unwrap_err();
    assert_eq!(taken.code(), Code::AlreadyExists);
    Ok(())
}

#[tokio::test]
async fn a_pool_that_tests_need_is_not_deleted() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let pool = create(&world, plain("accounts", &["ada"])).await?;
    world.select_subject_with(vec![pooled("USER", "accounts")]).await?;
    world.dispatch().await?;
    assert_eq!(reason(&delete(&world, &pool.id).await.unwrap_err()), "pool_in_use");
    let engine = world.engine();
    let lease = engine.lease(now("", 1)).await?.remove(0);
    assert_eq!(reason(&delete(&world, &pool.id).await.unwrap_err()), "pool_in_use");
    engine.complete(&lease.id, false).await?;
    delete(&world, &pool.id).await?;
    assert_eq!(get(&world, &pool.id).await.unwrap_err().code(), Code::NotFound);
    assert_eq!(delete(&world, &pool.id).await.unwrap_err().code(), Code::NotFound);
    Ok(())
}

#[tokio::test]
async fn pools_are_those_of_their_project() -> Result<()> {
    let world = World::new().await?;
    let pool = create(&world, plain("accounts", &["ada"])).await?;
    create(&world, plain("phones", &["a", "b"])).await?;
    let request = ListPoolsRequest { project_id: world.project.clone(), page: None };
    let listed = service(&world).list_pools(world.user.call(request.clone())).await?.into_inner();
    let listed: Vec<_> = listed.try_collect().await?;
    let listed: Vec<Pool> = listed.iter().flat_map(|batch| batch.parse().unwrap()).collect();
    let names: Vec<_> = listed.iter().map(|pool| pool.name.as_str()).collect();
    assert_eq!(names, ["phones", "accounts"]);

    let stranger = world.stranger().await;
    let unknown = service(&world).list_pools(stranger.call(request)).await;
    assert_eq!(unknown.err().context("a list")?.code(), Code::NotFound);
    let (other, _) = world.project_with_set().await?;
    let request = GetPoolRequest { project_id: other, id: pool.id.clone() };
    let unknown = service(&world).get_pool(world.user.call(request)).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
    let reader = world.colleague("Read").await;
    let request = CreatePoolRequest {
        project_id: world.project.clone(),
        pool: Some(plain("tablets", &["a"])),
    };
    let refused = service(&world).create_pool(reader.call(request)).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);

    Ok(())
}

#[tokio::test]
async fn queues_that_differ_in_their_pools_say_so() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    world.dispatch().await?;
    let pool = create(&world, plain("accounts", &["ada"])).await?;
    world.select_subject_with(vec![pooled("USER", "accounts")]).await?;
    world.dispatch().await?;
    let mut engines = EngineServiceClient::new(world.execution.clone());
    let queues = engines.list_queues(world.user.call(ListQueuesRequest {})).await?.into_inner();
    let needs: Vec<_> = queues.items.into_iter().map(|queue| queue.pools).collect();
    let needed =
        QueuePool { id: pool.id, project_id: world.project.clone(), name: "accounts".to_owned() };
    assert_eq!(needs, [vec![], vec![needed]]);
    Ok(())
}
