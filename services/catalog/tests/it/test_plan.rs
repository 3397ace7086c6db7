//! Test plans.

use assay_proto::{PlanStatus, TestType, VariableInput, catalog::*};

use crate::{
    user::User,
    world::{World, fault, invalid_fields, take_snapshot, target},
};

/// A test case with one plan, which was executed.
async fn executed(user: &User) -> (TestCase, TestPlan) {
    let project = user.project().await;
    let case = user.case(&project, "login").await;
    let plan = user.ready_plan(&case).await;
    let set = user.set(&project, &[&case]).await;
    take_snapshot(user, target(&set), false).await.unwrap();
    (case, plan)
}

#[tokio::test]
async fn a_new_plan_has_the_next_revision_and_default_values() {
    let world = World::start().await;
    let user = world.user().await;
    let case = user.case(&user.project().await, "login").await;
    let mut ready = TestPlanInput::default();
    ready.set_status(PlanStatus::ReadyForExecution);
    let plan = user.create_plan(&case, ready).await.unwrap();

    assert_eq!(plan.revision, 1);
    assert_eq!(plan.status(), PlanStatus::New);
    assert_eq!(plan.test_type(), TestType::Default);
    assert_eq!((plan.instances, plan.minimum_duration_in_min), (1, 0.0));
    assert_eq!(plan.test_case_id, case.id);
    assert_eq!(user.get_plan(&plan.id).await, plan);
    assert_eq!(user.create_plan(&case, TestPlanInput::default()).await.unwrap().revision, 2);
    let (noun, action, data) = world.events().await.pop().unwrap();
    assert_eq!((noun.as_str(), action.as_str()), ("test_plan", "created"));
    assert_eq!((&data["Target"], &data["TargetId"]), (&"TestCase".into(), &case.id.into()));
    assert_eq!(data["ProjectId"], case.project_id);
}

#[tokio::test]
async fn concurrently_created_plans_get_unique_revisions() {
    let world = World::start().await;
    let user = world.user().await;
    let case = user.case(&user.project().await, "login").await;
    let plans =
        (0..20).map(|_| async { user.create_plan(&case, TestPlanInput::default()).await.unwrap() });
    let plans = futures::future::join_all(plans).await;
    let mut revisions: Vec<i32> = plans.into_iter().map(|plan| plan.revision).collect();
    revisions.sort_unstable();
    assert_eq!(revisions, (1..=20).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_case_shows_the_status_of_its_highest_revision() {
    let world = World::start().await;
    let user = world.user().await;
    let case = user.case(&user.project().await, "login").await;
    let first = user.ready_plan(&case).await;
    assert_eq!(user.get_case(&case.id).await.last_plan_status(), PlanStatus::ReadyForExecution);
    user.create_plan(&case, TestPlanInput::default()).await.unwrap();
    assert_eq!(user.get_case(&case.id).await.last_plan_status(), PlanStatus::New);
    let changes = TestPlanInput { description: Some("old".into()), ..TestPlanInput::default() };
    user.update_plan(&case, &first, changes, &["Description"]).await.unwrap();
    assert_eq!(user.get_case(&case.id).await.last_plan_status(), PlanStatus::New);
}

#[tokio::test]
async fn an_update_keeps_absent_fields_and_clears_only_nullable_fields() {
    let world = World::start().await;
    let user = world.user().await;
    let case = user.case(&user.project().await, "login").await;
    let input = TestPlanInput {
        instances: Some(7),
        minimum_duration_in_min: Some(2.5),
        description: Some("a".into()),
        input_file_id: Some("any text".into()),
        ..TestPlanInput::default()
    };
    let plan = user.create_plan(&case, input).await.unwrap();
    let none = TestPlanInput::default;

    let fields = ["Instances", "TestType", "Status", "MinimumDurationInMin"];
    let mut wrong = invalid_fields(user.update_plan(&case, &plan, none(), &fields).await);
    wrong.sort();
    assert_eq!(wrong, ["Instances", "MinimumDurationInMin", "Status", "TestType"]);
    let cleared = user.update_plan(&case, &plan, none(), &["Description"]).await.unwrap();
    assert_eq!(cleared.description, None);
    assert_eq!(cleared.input_file_id.as_deref(), Some("any text"));
    assert_eq!(cleared.instances, 7);
    assert_eq!(
        fault(user.update_plan(&case, &plan, none(), &["Description"]).await),
        "stale_data_version"
    );
}

#[tokio::test]
async fn numbers_have_limits() {
    let world = World::start().await;
    let user = world.user().await;
    let case = user.case(&user.project().await, "login").await;
    for (instances, minutes, field) in [
        (0, 0.0, "Instances"),
        (10_001, 0.0, "Instances"),
        (1, -1.0, "MinimumDurationInMin"),
        (1, f64::NAN, "MinimumDurationInMin"),
        (1, f64::INFINITY, "MinimumDurationInMin"),
        (1, 1e308, "MinimumDurationInMin"),
    ] {
        let input = TestPlanInput {
            instances: Some(instances),
            minimum_duration_in_min: Some(minutes),
            ..TestPlanInput::default()
        };
        assert_eq!(invalid_fields(user.create_plan(&case, input).await), [field]);
    }
    for (minimum, maximum) in [(0.0, -1.0), (0.0, f64::NAN), (0.0, 6_000_001.0), (2.0, 1.5)] {
        let input = TestPlanInput {
            minimum_duration_in_min: Some(minimum),
            maximum_duration_in_min: Some(maximum),
            ..TestPlanInput::default()
        };
        let refused = invalid_fields(user.create_plan(&case, input).await);
        assert_eq!(refused, ["MaximumDurationInMin"]);
    }
}

#[tokio::test]
async fn only_status_and_texts_of_an_executed_plan_can_change() {
    let world = World::start().await;
    let user = world.user().await;
    let (case, plan) = executed(&user).await;
    let mut changes = TestPlanInput {
        instances: Some(2),
        description: Some("more".into()),
        monitoring_message: Some("watch".into()),
        ..TestPlanInput::default()
    };
    changes.set_status(PlanStatus::New);

    let fields = ["Status", "Description", "MonitoringMessage"];
    let plan = user.update_plan(&case, &plan, changes.clone(), &fields).await.unwrap();
    assert_eq!(plan.status(), PlanStatus::New);
    assert_eq!(plan.monitoring_message.as_deref(), Some("watch"));
    let refused = user.update_plan(&case, &plan, changes.clone(), &["Instances"]).await;
    assert_eq!(fault(refused), "test_plan_frozen");
    let variables = TestPlanInput {
        variables: vec![VariableInput { name: "new".into(), ..VariableInput::default() }],
        ..TestPlanInput::default()
    };
    let refused = user.update_plan(&case, &plan, variables, &["Variables"]).await;
    assert_eq!(fault(refused), "test_plan_frozen");

    changes.instances = Some(1);
    let same = user.update_plan(&case, &plan, changes, &["Instances", "Description"]).await;
    assert_eq!(same.unwrap().instances, 1);
}

#[tokio::test]
async fn a_plan_is_found_only_under_its_case_and_project() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let case = user.case(&project, "login").await;
    let other = user.case(&project, "logout").await;
    let plan = user.create_plan(&case, TestPlanInput::default()).await.unwrap();
    let foreign = user.project().await;
    let get = async |project: Option<&str>, case: Option<&str>| {
        let request = user.call(GetTestPlanRequest {
            project_id: project.map(ToOwned::to_owned),
            test_case_id: case.map(ToOwned::to_owned),
            id: plan.id.clone(),
        });
        user.plans().get_test_plan(request).await
    };
    assert!(get(None, None).await.is_ok());
    assert!(get(Some(&project.id), Some(&case.id)).await.is_ok());
    assert_eq!(fault(get(Some(&project.id), Some(&other.id)).await), "not_found");
    assert_eq!(fault(get(Some(&foreign.id), Some(&case.id)).await), "not_found");
    let changed = user.update_plan(&other, &plan, TestPlanInput::default(), &[]).await;
    assert_eq!(fault(changed), "not_found");
}
