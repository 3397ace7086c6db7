//! Snapshots of test sets for executions.

use std::time::Instant;

use assay_proto::{PlanStatus, TestType, VariableInput, catalog::*};

use crate::{
    user::User,
    world::{Answer, World, fault, invalid_fields, take_snapshot, target},
};

async fn take(user: &User, set: &TestSet, skip_not_ready: bool) -> Answer<Snapshot> {
    take_snapshot(user, target(set), skip_not_ready).await
}

#[tokio::test]
async fn a_snapshot_has_the_latest_ready_plan_of_each_case() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let [a, b] = [user.case(&project, "a").await, user.case(&project, "b").await];
    for case in [&a, &b] {
        user.ready_plan(case).await;
    }
    let variable = |name: &str, is_secured| VariableInput {
        name: name.into(),
        content: format!("content of {name}"),
        is_secured,
        ..VariableInput::default()
    };
    let mut second = TestPlanInput {
        instances: Some(4),
        minimum_duration_in_min: Some(0.5),
        maximum_duration_in_min: Some(7.5),
        variables: vec![variable("USER", false), variable("PIN", true)],
        ..TestPlanInput::default()
    };
    second.set_test_type(TestType::Performance);
    let second = user.create_plan(&b, second).await.unwrap();
    let mut ready = TestPlanInput::default();
    ready.set_status(PlanStatus::ReadyForExecution);
    user.update_plan(&b, &second, ready, &["Status"]).await.unwrap();
    user.create_plan(&b, TestPlanInput::default()).await.unwrap();
    let subject = user.subject(&project).await;
    let environment = user.environment(&project).await;
    let set = user.set(&project, &[&b, &a]).await;
    let changes = TestSetInput {
        tags: Some("x,y".into()),
        priority: Some("High".into()),
        stop_on_failure: true,
        time_out: 3.0,
        selected_subject_id: Some(subject.id.clone()),
        ..TestSetInput::default()
    };
    let fields = ["Tags", "Priority", "StopOnFailure", "TimeOut", "SelectedSubjectId"];
    let set = user.update_set(&set, changes, &fields).await.unwrap();

    let target = SnapshotTarget { environment_id: Some(environment.id.clone()), ..target(&set) };
    let snapshot = take_snapshot(&user, target, false).await.unwrap();
    assert_eq!(snapshot.test_set_name, "Nightly");
    assert_eq!((snapshot.stop_on_failure, snapshot.time_out), (true, 3.0));
    assert_eq!(snapshot.tags.as_deref(), Some("x,y"));
    assert_eq!(snapshot.priority.as_deref(), Some("High"));
    assert_eq!(snapshot.default_branch, "main");
    let of = |id: &str| (id.to_owned(), "1.0".to_owned(), "Web shop".to_owned());
    assert_eq!(snapshot.subject.map(|s| (s.id, s.identifier, s.name)), Some(of(&subject.id)));
    assert_eq!(snapshot.environment.map(|e| (e.id, e.name)), Some((environment.id, "Lab".into())));
    let [of_b, of_a] = &snapshot.test_cases[..] else { panic!("{:?}", snapshot.test_cases) };
    let contents: Vec<_> = of_b.variables.iter().map(|v| v.content.as_str()).collect();
    assert_eq!(contents, ["content of USER", "********"]);
    assert_eq!(
        SnapshotTestCase { variables: Vec::new(), ..of_b.clone() },
        SnapshotTestCase {
            id: b.id,
            identifier: "b".into(),
            name: "Case b".into(),
            test_plan_id: second.id,
            test_plan_revision: 2,
            test_type: TestType::Performance.into(),
            instances: 4,
            minimum_duration_in_min: 0.5,
            maximum_duration_in_min: 7.5,
            variables: Vec::new(),
            own_identifier: None,
        }
    );
    assert_eq!(of_a.id, a.id);
}

#[tokio::test]
async fn cases_that_are_not_ready_are_rejected_or_skipped() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let [ready, new, none, archived] = [
        user.case(&project, "ready").await,
        user.case(&project, "new/1").await,
        user.case(&project, "none").await,
        user.case(&project, "archived").await,
    ];
    let plan = user.ready_plan(&ready).await;
    user.create_plan(&new, TestPlanInput::default()).await.unwrap();
    let set = user.set(&project, &[&archived, &new, &ready, &none]).await;
    user.archive_case(&archived).await;

    assert_eq!(
        invalid_fields(take(&user, &set, false).await),
        ["TestCases/new~11", "TestCases/none"]
    );
    let changes = TestPlanInput { instances: Some(2), ..TestPlanInput::default() };
    let plan = user.update_plan(&ready, &plan, changes, &["Instances"]).await;
    assert_eq!(plan.expect("a rejected snapshot freezes no plan").instances, 2);
    let snapshot = take(&user, &set, true).await.unwrap();
    let identifiers: Vec<_> = snapshot.test_cases.iter().map(|c| c.identifier.as_str()).collect();
    assert_eq!(identifiers, ["ready"]);

    let empty = user.set(&project, &[]).await;
    assert_eq!(invalid_fields(take(&user, &empty, false).await), ["TestCases"]);
    let none = user.set(&project, &[&none]).await;
    assert_eq!(invalid_fields(take(&user, &none, true).await), ["TestCases"]);
}

#[tokio::test]
async fn concurrent_snapshots_of_the_same_cases_succeed() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let mut cases = Vec::new();
    for number in 0..20 {
        let case = user.case(&project, &format!("case-{number}")).await;
        user.ready_plan(&case).await;
        cases.push(case);
    }
    let forwards = user.set(&project, &cases.iter().collect::<Vec<_>>()).await;
    let backwards = user.set(&project, &cases.iter().rev().collect::<Vec<_>>()).await;
    let both = (0..20).map(|number| {
        let set = if number % 2 == 0 { &forwards } else { &backwards };
        take(&user, set, false)
    });
    for snapshot in futures::future::join_all(both).await {
        assert_eq!(snapshot.unwrap().test_cases.len(), 20);
    }
}

#[tokio::test]
async fn a_snapshot_of_10_000_cases_takes_less_than_5_seconds() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let set = user.set(&project, &[]).await;
    sqlx::query(
        "with cases as (
             insert into test_case (customer_id, project_id, id, identifier, name, description)
             select $1, $2, gen_random_uuid(), 'case-' || n, repeat('x', 255), ''
             from generate_series(1, 10000) n
             returning id
         ), plans as (
             insert into test_plan (customer_id, test_case_id, id, revision, status, test_type,
                 instances, minimum_duration_in_min)
             select $1, id, gen_random_uuid(), 1, 'ReadyForExecution', 'Default', 1, 0 from cases
         )
         insert into test_set_case (customer_id, test_set_id, test_case_id, position)
         select $1, $3, id, row_number() over () from cases",
    )
    .bind(user.identity.customer)
    .bind(project.id.parse::<uuid::Uuid>().unwrap())
    .bind(set.id.parse::<uuid::Uuid>().unwrap())
    .execute(&world.db)
    .await
    .unwrap();
    for _ in 0..2 {
        let started = Instant::now();
        assert_eq!(take(&user, &set, false).await.unwrap().test_cases.len(), 10_000);
        let elapsed = started.elapsed();
        // A generous limit: it detects a query per case, not a slow machine.
        assert!(elapsed.as_secs() < 5, "elapsed: {elapsed:?}");
    }
}

/// Adds cases to the set, each with a plan with variables of 32 KiB.
async fn fill(world: &World, user: &User, set: &TestSet, cases: i32, variables: i32) {
    sqlx::query(
        "with cases as (
             insert into test_case (customer_id, project_id, id, identifier, name, description)
             select $1, $2, gen_random_uuid(), 'case-' || n, 'Case', ''
             from generate_series(1, $4) n
             returning id
         ), plans as (
             insert into test_plan (customer_id, test_case_id, id, revision, status, test_type,
                 instances, minimum_duration_in_min, variables)
             select $1, id, gen_random_uuid(), 1, 'ReadyForExecution', 'Default', 1, 0,
                 (select jsonb_agg(jsonb_build_object(
                      'PoolName', '', 'IsSecured', false, 'ValidationRule', '',
                      'Name', 'V' || v, 'DisplayName', '', 'Content', repeat('x', 32768)
                  )) from generate_series(1, $5) v)
             from cases
         )
         insert into test_set_case (customer_id, test_set_id, test_case_id, position)
         select $1, $3, id, row_number() over () from cases",
    )
    .bind(user.identity.customer)
    .bind(set.project_id.parse::<uuid::Uuid>().unwrap())
    .bind(set.id.parse::<uuid::Uuid>().unwrap())
    .bind(cases)
    .bind(variables)
    .execute(&world.db)
    .await
    .unwrap();
}

#[tokio::test]
async fn a_snapshot_of_more_than_64_mib_is_rejected_and_freezes_no_plan() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let set = user.set(&project, &[]).await;
    fill(&world, &user, &set, 70, 31).await;
    assert_eq!(fault(take(&user, &set, false).await), "execution_too_large");
    let frozen = sqlx::query_scalar("select count(*) from test_plan where frozen_at is not null");
    assert_eq!(frozen.fetch_one(&world.db).await.ok(), Some(0_i64));
}

#[tokio::test]
async fn a_large_snapshot_is_split_into_messages_within_the_size_limit() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let set = user.set(&project, &[]).await;
    fill(&world, &user, &set, 60, 31).await;
    let snapshot = take(&user, &set, false).await.unwrap();
    assert_eq!(snapshot.test_cases.len(), 60);
    assert!(snapshot.test_cases.iter().all(|case| case.variables.len() == 31));
}

#[tokio::test]
async fn a_snapshot_is_rejected_if_a_variable_does_not_match_its_rule() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let case = user.case(&project, "a").await;
    let variable = |name: &str, is_secured| VariableInput {
        name: name.into(),
        content: "ada".into(),
        validation_rule: "^[a-z]+$".into(),
        is_secured,
        ..VariableInput::default()
    };
    let variables = vec![variable("USER", false), variable("PIN", true)];
    let plan = TestPlanInput { variables, ..TestPlanInput::default() };
    let plan = user.create_plan(&case, plan).await.unwrap();
    let mut ready = TestPlanInput::default();
    ready.set_status(PlanStatus::ReadyForExecution);
    user.update_plan(&case, &plan, ready, &["Status"]).await.unwrap();
    let set = user.set(&project, &[&case]).await;
    // Simulates a row that was written before rules were checked.
    sqlx::query(
        "update test_plan set variables = replace(variables::text, '[a-z]', '[0-9]')::jsonb",
    )
    .execute(&world.db)
    .await
    .unwrap();
    let fields = ["TestCases/a/Variables/PIN/Content", "TestCases/a/Variables/USER/Content"];
    assert_eq!(invalid_fields(take(&user, &set, false).await), fields);
    sqlx::query(
        "update test_plan set variables = replace(variables::text, '[0-9]', '[a-z]')::jsonb",
    )
    .execute(&world.db)
    .await
    .unwrap();
    assert_eq!(take(&user, &set, false).await.unwrap().test_cases.len(), 1);
}
