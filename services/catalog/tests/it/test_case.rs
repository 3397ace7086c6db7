//! Test cases.

use assay_proto::{PlanStatus, TestType, catalog::*};
use serde_json::json;

use crate::world::{World, fault, invalid_fields};

fn named(name: &str) -> TestCaseInput {
    TestCaseInput { name: name.to_owned(), ..TestCaseInput::default() }
}

fn identified(identifier: &str) -> TestCaseInput {
    TestCaseInput { identifier: Some(identifier.to_owned()), ..named("Log in") }
}

#[tokio::test]
async fn creating_a_test_case_publishes_an_event() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let case = user.create_case(&project.id, identified("login")).await.unwrap();

    assert_eq!(case.identifier, "login");
    assert_eq!(case.project_id, project.id);
    assert_eq!(case.test_plan_list, Some(TestPlanList::default()));
    assert_eq!(case.data_version.as_deref(), Some("1"));
    assert_eq!(user.get_case(&case.id).await, case);
    let events = world.events().await.pop().unwrap();
    let data = json!({
        "Source": "TestCase", "SourceId": case.id, "Target": "Project",
        "TargetId": project.id, "Action": "Created", "ProjectId": project.id,
        "RecordVersion": "1", "Actor": user.identity.caller.actor(),
    });
    assert_eq!(events, ("test_case".to_owned(), "created".to_owned(), data));
}

#[tokio::test]
async fn a_missing_identifier_is_generated_and_skips_existing_ones() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    for taken in ["TC-2", "TC-3"] {
        user.case(&project, taken).await;
    }
    let mut identifiers = Vec::new();
    for input in [named("a"), named("b"), identified(" "), named("d")] {
        identifiers.push(user.create_case(&project.id, input).await.unwrap().identifier);
    }
    assert_eq!(identifiers, ["TC-1", "TC-4", "TC-5", "TC-6"]);
    let other = user.project().await;
    assert_eq!(user.create_case(&other.id, named("a")).await.unwrap().identifier, "TC-1");
}

#[tokio::test]
async fn concurrently_created_cases_get_unique_identifiers() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let mut attempts = tokio::task::JoinSet::new();
    for number in 1..=40 {
        let (user, project) = (user.clone(), project.id.clone());
        let input = match number % 4 {
            0 => identified(&format!("TC-{number}")),
            _ => named("Log in"),
        };
        let is_named = input.identifier.is_some();
        attempts.spawn(async move { (is_named, user.create_case(&project, input).await) });
    }
    let mut identifiers = std::collections::HashSet::new();
    let mut failed = 0;
    while let Some(attempt) = attempts.join_next().await {
        match attempt.unwrap() {
            (_, Ok(case)) => assert!(identifiers.insert(case.identifier)),
            (true, answer) => {
                assert_eq!(fault(answer), "already_exists");
                failed += 1;
            }
            (false, answer) => panic!("{answer:?}"),
        }
    }
    assert_eq!(identifiers.len() + failed, 40);
}

#[tokio::test]
async fn an_identifier_is_unique_among_the_active_cases_of_a_project() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let first = user.case(&project, "login").await;
    assert_eq!(fault(user.create_case(&project.id, identified("login")).await), "already_exists");
    user.case(&user.project().await, "login").await;

    let archived = user.archive_case(&first).await;
    let second = user.case(&project, "login").await;
    let back = TestCaseInput::default();
    assert_eq!(fault(user.update_case(&archived, back, &["Archived"]).await), "already_exists");
    assert_eq!(user.get_case(&second.id).await, second);
    assert!(user.get_case(&first.id).await.archived);
}

#[tokio::test]
async fn an_update_ignores_read_only_fields() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let case = user.case(&project, "login").await;
    let changes = TestCaseInput {
        description: "How to log in".into(),
        identifier: Some("\0".into()),
        ..TestCaseInput::default()
    };
    let fields = ["Description", "Identifier", "Id", "LastResult"];
    let updated = user.update_case(&case, changes, &fields).await.unwrap();
    assert_eq!(updated.identifier, "login");
    assert_eq!(updated.name, case.name);
    assert_eq!(updated.description, "How to log in");
    assert_eq!(
        fault(user.update_case(&case, named("late"), &["Name"]).await),
        "stale_data_version"
    );
    assert_eq!(user.get_case(&case.id).await, updated);
}

#[tokio::test]
async fn details_show_the_plans_highest_revision_first() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let case = user.case(&project, "login").await;
    assert_eq!(case.last_plan_status, None);
    user.ready_plan(&case).await;
    let mut second = TestPlanInput {
        instances: Some(3),
        minimum_duration_in_min: Some(1.5),
        description: Some("Longer".into()),
        ..TestPlanInput::default()
    };
    second.set_test_type(TestType::Stability);
    let second = user.create_plan(&case, second).await.unwrap();

    let case = user.get_case(&case.id).await;
    let plans = case.test_plan_list.as_ref().unwrap();
    let revisions: Vec<i32> = plans.items.iter().map(|plan| plan.revision).collect();
    assert_eq!(revisions, [2, 1]);
    assert_eq!(
        plans.items[0],
        TestPlanSummary {
            id: second.id,
            description: Some("Longer".into()),
            revision: 2,
            test_type: TestType::Stability.into(),
            minimum_duration_in_min: 1.5,
            monitoring_message: None,
            instances: 3,
        }
    );
    assert_eq!(case.last_plan_status(), PlanStatus::New);
    assert_eq!(
        case.data_version.as_deref(),
        Some("1"),
        "a new plan does not change the version of the case"
    );
    let updated = user.update_case(&case, named("Sign in"), &["Name"]).await.unwrap();
    assert_eq!(updated.test_plan_list, case.test_plan_list);
}

#[tokio::test]
async fn all_invalid_fields_are_reported_together() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let wrong = TestCaseInput {
        name: String::new(),
        description: "\0".into(),
        identifier: Some("x".repeat(256)),
        ..TestCaseInput::default()
    };
    assert_eq!(
        invalid_fields(user.create_case(&project.id, wrong).await),
        ["Description", "Identifier", "Name"]
    );
}

#[tokio::test]
async fn a_case_needs_an_existing_project() {
    let world = World::start().await;
    let user = world.user().await;
    for project in ["0", "01890a5d-ac96-774b-bcce-b302099a8057"] {
        for input in [named("a"), identified("a")] {
            assert_eq!(fault(user.create_case(project, input).await), "not_found");
        }
    }
    assert!(world.events().await.is_empty());
}
