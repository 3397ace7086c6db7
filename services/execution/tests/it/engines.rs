//! The list of engines, and the lengths of queues.

use anyhow::Result;
use assay_proto::{
    Batch as _,
    catalog::EnvironmentInput,
    execution::{
        Engine, GetQueueLengthRequest, LeaseInput, ListEnginesRequest, ListQueuesRequest, Queue,
        QueueLength, engine_service_client::EngineServiceClient,
    },
};
use assay_testkit::TestUser;
use futures::TryStreamExt;
use serde_json::json;
use tonic::Status;

use crate::world::{World, fields, instance, now};

impl World {
    /// Stores the engines that have asked for work, and returns all of a user's customer.
    async fn engines(&self, user: &TestUser) -> Result<Vec<Engine>> {
        self.queue.store_engines(&self.db).await?;
        let mut engines = EngineServiceClient::new(self.execution.clone());
        let batches = engines.list_engines(user.call(ListEnginesRequest { page: None })).await?;
        let batches: Vec<_> = batches.into_inner().try_collect().await?;
        Ok(batches.into_iter().flat_map(|batch| batch.parse().unwrap()).collect())
    }

    pub(crate) async fn length(&self, group: &str, labels: &[&str]) -> Result<QueueLength, Status> {
        let request = GetQueueLengthRequest {
            target_group: Some(group.to_owned()),
            labels: labels.iter().map(ToString::to_string).collect(),
            project_ids: Vec::new(),
        };
        self.length_of(request).await
    }

    async fn length_of(&self, request: GetQueueLengthRequest) -> Result<QueueLength, Status> {
        let mut engines = EngineServiceClient::new(self.execution.clone());
        Ok(engines.get_queue_length(self.user.call(request)).await?.into_inner())
    }

    async fn queues(&self) -> Result<Vec<Queue>> {
        let mut engines = EngineServiceClient::new(self.execution.clone());
        Ok(engines.list_queues(self.user.call(ListQueuesRequest {})).await?.into_inner().items)
    }
}

fn asking(name: &str, group: &str, labels: &[&str]) -> LeaseInput {
    LeaseInput {
        engine: Some(name.to_owned()),
        labels: labels.iter().map(ToString::to_string).collect(),
        version: Some("1.2".to_owned()),
        ..now(group, 1)
    }
}

#[tokio::test]
async fn engines_are_listed_with_their_state_and_leases() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    world.dispatch().await?;
    let engine = world.engine();
    let lease = engine.lease(asking("busy", "", &["gpu"])).await?.remove(0);
    assert!(engine.lease(asking("idle", "linux", &[])).await?.is_empty());
    assert!(engine.lease(asking("gone", "linux", &[])).await?.is_empty());

    let mut engines = world.engines(&world.user).await?;
    engines.sort_by(|one, other| one.name.cmp(&other.name));
    let states: Vec<_> = engines.iter().map(|e| (e.name.as_str(), e.state.as_str())).collect();
    assert_eq!(states, [("busy", "Busy"), ("gone", "Idle"), ("idle", "Idle")]);
    let busy = &engines[0];
    assert_eq!((busy.target_group.as_str(), busy.version.as_str()), ("", "1.2"));
    assert_eq!(busy.labels, ["gpu"]);
    let [held] = &busy.leases[..] else { panic!("{busy:?}") };
    assert_eq!((&held.id, &held.test_report_id), (&lease.id, &lease.test_report_id));
    assert_eq!((&held.execution_id, &held.project_id), (&lease.execution_id, &lease.project_id));
    assert_eq!(held.test_case_identifier, "a");

    world
        .change("update engine set last_seen_at = now() - interval '1 hour' where name = 'gone'")
        .await?;
    engine.report(&lease.id, json!([instance(1, "Passed")])).await?;
    engine.complete(&lease.id, false).await?;
    let projects = vec![world.project.clone()];
    let restricted =
        LeaseInput { project_ids: projects.clone(), ..asking("idle", "mac", &["usb"]) };
    assert!(engine.lease(restricted).await?.is_empty());
    let engines = world.engines(&world.user).await?;
    let of = |name: &str| engines.iter().find(|engine| engine.name == name).unwrap();
    assert_eq!((of("gone").state.as_str(), of("busy").state.as_str()), ("Away", "Idle"));
    assert_eq!(
        (of("idle").target_group.as_str(), &of("idle").labels[..]),
        ("mac", &["usb".to_owned()][..])
    );
    assert_eq!((&of("idle").project_ids, &of("gone").project_ids), (&projects, &Vec::new()));
    assert!(world.engines(&world.stranger().await).await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn engines_that_were_not_seen_for_a_week_are_forgotten() -> Result<()> {
    let world = World::new().await?;
    world.engine().lease(asking("old", "", &[])).await?;
    world.engines(&world.user).await?;
    world.change("update engine set last_seen_at = now() - interval '8 days'").await?;
    world.engine().lease(asking("new", "", &[])).await?;
    let engines = world.engines(&world.user).await?;
    assert_eq!(engines.iter().map(|engine| engine.name.as_str()).collect::<Vec<_>>(), ["new"]);
    Ok(())
}

#[tokio::test]
async fn a_customer_has_at_most_a_thousand_engines() -> Result<()> {
    let world = World::new().await?;
    sqlx::query(
        "insert into engine (customer_id, id, name, target_group, labels, version, last_seen_at)
         select $1, gen_random_uuid(), 'engine ' || nr, '', '{}', '', now() - interval '1 hour'
         from generate_series(1, 1200) as nr",
    )
    .bind(world.user.customer)
    .execute(&world.db)
    .await?;
    world.engine().lease(asking("new", "", &[])).await?;
    let engines = world.engines(&world.user).await?;
    assert_eq!(engines.len(), 1000);
    assert!(engines.iter().any(|engine| engine.name == "new"));
    Ok(())
}

#[tokio::test]
async fn the_length_of_a_queue_counts_what_engines_with_these_labels_do() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1), ("b", 1), ("c", 1)]).await?;
    for (labels, exclusive) in [(&[][..], false), (&["gpu"], false), (&["gpu"], true)] {
        let environment = EnvironmentInput {
            name: "Lab".into(),
            target_group: "linux".into(),
            labels: labels.iter().map(ToString::to_string).collect(),
            exclusive,
            ..EnvironmentInput::default()
        };
        world.select(environment).await?;
        world.dispatch().await?;
    }
    assert_eq!(world.engine().lease(now("linux", 2)).await?.len(), 2);

    let linux = world.length("linux", &[]).await?;
    assert_eq!((linux.queued, linux.running, linux.total), (1, 2, 3));
    assert!(linux.queued_since.is_some());
    let gpu = world.length("linux", &["gpu"]).await?;
    assert_eq!((gpu.queued, gpu.running), (7, 2));
    assert_eq!(world.length("gpu", &["linux"]).await?, gpu);
    assert_eq!(world.length("mac", &[]).await?, QueueLength::default());
    let refused = world.length("", &["x\u{1f}"]).await.unwrap_err();
    assert_eq!(fields(&refused), ["labels/0"]);
    let of_projects = async |ids: &[&str]| {
        let request = GetQueueLengthRequest {
            target_group: Some("linux".to_owned()),
            labels: vec!["gpu".to_owned()],
            project_ids: ids.iter().map(ToString::to_string).collect(),
        };
        world.length_of(request).await
    };
    assert_eq!(of_projects(&[&world.project]).await?, gpu);
    assert_eq!(of_projects(&[&uuid::Uuid::now_v7().to_string()]).await?, QueueLength::default());
    assert_eq!(fields(&of_projects(&["shop"]).await.unwrap_err()), ["projectIds/0"]);

    let queues = world.queues().await?;
    let lengths: Vec<_> = queues.iter().map(|queue| (queue.labels.len(), queue.queued)).collect();
    assert_eq!(lengths, [(1, 1), (2, 3), (2, 3)]);
    assert!(queues[1].environment_id.is_none() && queues[2].environment_id.is_some());
    Ok(())
}
