//! Engines that are restricted to projects.

use anyhow::Result;
use assay_ledger::schedule::{
    queue::{QueueName, QueuePart},
    store,
};
use assay_proto::{ProjectId, catalog::TestSetInput, execution::LeaseInput};
use uuid::Uuid;

use super::labels::reads;
use crate::world::{World, fields, now};

/// Returns a request that is restricted to these projects.
fn of_projects(projects: &[&str], max: i32) -> LeaseInput {
    LeaseInput { project_ids: projects.iter().map(ToString::to_string).collect(), ..now("", max) }
}

/// Starts an execution of one test in a new project. Returns the project and the execution.
async fn start(world: &mut World) -> Result<(String, String)> {
    (world.project, world.set) = world.project_with_set().await?;
    world.include(&[("a", 1)]).await?;
    Ok((world.project.clone(), world.dispatch().await?.id))
}

#[tokio::test]
async fn engines_get_only_work_of_their_projects() -> Result<()> {
    let mut world = World::new().await?;
    let (one, of_one) = start(&mut world).await?;
    let (other, of_other) = start(&mut world).await?;
    let (third, of_third) = start(&mut world).await?;
    let engine = world.engine();
    let unknown = Uuid::now_v7().to_string();
    assert!(engine.lease(of_projects(&[&unknown], 9)).await?.is_empty());

    let lease = engine.lease(of_projects(&[&other, &unknown], 9)).await?;
    assert_eq!((lease.len(), &lease[0].execution_id), (1, &of_other));
    assert!(engine.lease(of_projects(&[&other], 9)).await?.is_empty());
    // Its work comes back to it.
    engine.release(&lease[0].id).await?;
    let lease = engine.lease(of_projects(&[&other, &other], 9)).await?;
    assert_eq!((lease.len(), &lease[0].project_id), (1, &other));

    // Each request takes the oldest work of its projects.
    let lease = engine.lease(of_projects(&[&third, &one], 1)).await?;
    assert_eq!(lease[0].execution_id, of_one);
    assert_eq!(engine.lease(now("", 9)).await?[0].execution_id, of_third);
    let stranger = world.stranger().await;
    start(&mut world).await?;
    let foreign = of_projects(&[&world.project], 9);
    assert!(world.engine_of(&stranger).lease(foreign).await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn urgent_work_of_a_project_comes_before_older_work_of_another() -> Result<()> {
    let mut world = World::new().await?;
    let (one, _) = start(&mut world).await?;
    (world.project, world.set) = world.project_with_set().await?;
    world.include(&[("a", 1)]).await?;
    let high = TestSetInput { priority: Some("High".into()), ..TestSetInput::default() };
    world.change_set(high, &["Priority"]).await?;
    let urgent = world.dispatch().await?.id;
    let both = of_projects(&[&one, &world.project], 2);
    let leases = world.engine().lease(both).await?;
    assert_eq!(leases[0].execution_id, urgent);
    assert_eq!(leases.len(), 2);
    Ok(())
}

/// Starts an execution of one test of a project with this priority. Returns its id.
async fn start_with(world: &World, priority: &str) -> Result<String> {
    let input = TestSetInput { priority: Some(priority.to_owned()), ..TestSetInput::default() };
    world.change_set(input, &["Priority"]).await?;
    Ok(world.dispatch().await?.id)
}

#[tokio::test]
async fn one_request_takes_work_of_projects_in_their_common_order() -> Result<()> {
    let mut world = World::new().await?;
    let (one, old) = start(&mut world).await?;
    let urgent = start_with(&world, "High").await?;
    let low = start_with(&world, "Low").await?;
    let (other, of_other) = start(&mut world).await?;
    let low_of_other = start_with(&world, "Low").await?;
    let order = async |max| {
        let leases = world.engine().lease(of_projects(&[&one, &other], max)).await?;
        anyhow::Ok(leases.into_iter().map(|lease| lease.execution_id).collect::<Vec<_>>())
    };
    // Less urgent work of one project does not come before that of the other.
    assert_eq!(order(3).await?, [urgent, old, of_other]);
    assert_eq!(order(9).await?, [low, low_of_other]);
    Ok(())
}

#[tokio::test]
async fn projects_of_engines_are_validated() -> Result<()> {
    let world = World::new().await?;
    let many = vec![world.project.as_str(); 51];
    for (projects, field) in [
        (&many[..], "ProjectIds"),
        (&["shop"], "ProjectIds/0"),
        (&[world.project.as_str(), ""], "ProjectIds/1"),
    ] {
        let refused = world.engine().lease(of_projects(projects, 1)).await.unwrap_err();
        assert_eq!(fields(&refused), [field]);
    }
    Ok(())
}

#[tokio::test]
async fn work_of_a_project_is_found_by_the_index_among_that_of_others() -> Result<()> {
    let mut world = World::new().await?;
    start(&mut world).await?;
    sqlx::query("alter table schedule drop constraint schedule_test_report_fkey")
        .execute(&world.db)
        .await?;
    // More urgent work of a thousand other projects, in the same queue and in others.
    sqlx::query(
        "insert into schedule (customer_id, project_id, execution_id, target_group,
             needs_public_ip, priority, status, id, test_report_id, report_sequence_nr)
         select customer_id, other, execution_id, (array['', 'linux', 'z'])[1 + nr % 3], false, 1,
             'Queued', gen_random_uuid(), gen_random_uuid(), nr
         from (select * from schedule limit 1) as one, generate_series(1, 50) as nr,
             (select gen_random_uuid() as other from generate_series(1, 1000)) as others",
    )
    .execute(&world.db)
    .await?;
    sqlx::query("analyze schedule").execute(&world.db).await?;

    // Statistics of a connection are exact for that connection.
    let options = sqlx::postgres::PgPoolOptions::new().max_connections(1);
    let db = options.connect(&world.database_url).await?;
    let (customer, offered) = (world.user.customer, [String::new()]);
    let project = ProjectId::from_record(&world.project)?;
    let before = reads(&db).await?;
    let parts = store::parts(&db, customer, &offered, &[project]).await?;
    let [QueuePart { queue, project: of_project, .. }] = &parts[..] else { panic!("{parts:?}") };
    assert_eq!((queue, of_project), (&QueueName::stored(String::new()), &Some(project)));
    let mut tx = assay_database::begin(&db).await?;
    assert_eq!(store::dequeue(&mut tx, customer, &parts[0], None, 5).await?.len(), 1);
    tx.rollback().await?;
    let rows = reads(&db).await? - before;
    assert!(rows < 100, "{rows} rows were read instead of those of the project");
    Ok(())
}
