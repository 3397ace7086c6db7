//! The rules of a set for the verdict of its executions.

use assay_proto::catalog::{lookup_service_client::LookupServiceClient, *};
use tonic::Response;

use crate::{
    user::User,
    world::{World, fault, invalid_fields, take_snapshot, target},
};

/// The rules of a set whose creator gives none.
fn defaults() -> Gate {
    Gate { max_new_failures: 0, allow_known_failures: true, ..Gate::default() }
}

fn input(gate: GateInput) -> TestSetInput {
    TestSetInput { name: "Nightly".into(), gate: Some(gate), ..TestSetInput::default() }
}

#[tokio::test]
async fn absent_rules_have_their_defaults() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    assert_eq!(user.set(&project, &[]).await.gate, Some(defaults()));
    let gate = GateInput {
        allow_known_failures: Some(false),
        min_pass_rate: Some(97.5),
        ..GateInput::default()
    };
    let set = user.create_set(&project, input(gate)).await.unwrap();
    let set = user.get_set(&set.id).await.unwrap();
    let expected =
        Gate { allow_known_failures: false, min_pass_rate: Some(97.5), ..Gate::default() };
    assert_eq!(set.gate, Some(expected));

    // Sets that were created by a release without rules.
    sqlx::query("update test_set set gate = default").execute(&world.db).await.unwrap();
    assert_eq!(user.get_set(&set.id).await.unwrap().gate, Some(defaults()));
}

#[tokio::test]
async fn an_update_replaces_all_rules_or_keeps_them() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let set = user.set(&project, &[]).await;
    let rules = GateInput {
        max_new_failures: Some(3),
        allow_known_failures: Some(false),
        max_flaky_tests: Some(5),
        min_pass_rate: Some(0.0),
        required_test_cases: vec!["LOGIN-1".into(), "LOGIN-2".into()],
        flaky_after_breaks: Some(3),
        longest_flaky_break: Some(1),
        flaky_within_runs: Some(20),
    };
    let strict = user.update_set(&set, input(rules), &["Gate"]).await.unwrap();
    let expected = Gate {
        max_new_failures: 3,
        allow_known_failures: false,
        max_flaky_tests: Some(5),
        min_pass_rate: Some(0.0),
        required_test_cases: vec!["LOGIN-1".into(), "LOGIN-2".into()],
        flaky_after_breaks: Some(3),
        longest_flaky_break: Some(1),
        flaky_within_runs: Some(20),
    };
    assert_eq!(strict.gate, Some(expected));
    assert_ne!(strict.data_version, set.data_version);

    let changes = TestSetInput { tags: Some("x".into()), ..TestSetInput::default() };
    let tagged = user.update_set(&strict, changes, &["Tags"]).await.unwrap();
    assert_eq!(tagged.gate, strict.gate, "an update without rules keeps them");
    let rules = GateInput { max_flaky_tests: Some(1), ..GateInput::default() };
    let loose = user.update_set(&tagged, input(rules), &["Gate"]).await.unwrap();
    assert_eq!(loose.gate, Some(Gate { max_flaky_tests: Some(1), ..defaults() }));
    let stale = user.update_set(&tagged, input(GateInput::default()), &["Gate"]).await;
    assert_eq!(fault(stale), "stale_data_version");
    let cleared = user.update_set(&loose, TestSetInput::default(), &["Gate"]).await;
    assert_eq!(invalid_fields(cleared), ["Gate"]);
    assert_eq!(user.get_set(&set.id).await.unwrap(), loose);
}

#[tokio::test]
async fn invalid_rules_are_rejected_with_their_fields() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let set = user.set(&project, &[]).await;
    let wrong = GateInput {
        max_new_failures: Some(-1),
        max_flaky_tests: Some(-1),
        min_pass_rate: Some(100.5),
        required_test_cases: vec!["a".into(), String::new(), "a\0".into()],
        ..GateInput::default()
    };
    let fields = [
        "Gate/MaxFlakyTests",
        "Gate/MaxNewFailures",
        "Gate/MinPassRate",
        "Gate/RequiredTestCases/1",
        "Gate/RequiredTestCases/2",
    ];
    assert_eq!(invalid_fields(user.create_set(&project, input(wrong.clone())).await), fields);
    assert_eq!(invalid_fields(user.update_set(&set, input(wrong), &["Gate"]).await), fields);
    assert_eq!(user.get_set(&set.id).await.unwrap(), set);
}

#[tokio::test]
async fn the_rules_of_a_set_and_those_that_would_replace_them_are_looked_up() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let strict = GateInput { max_flaky_tests: Some(1), ..GateInput::default() };
    let created = user.create_set(&project, input(strict)).await.unwrap();
    let set = user.get_set(&created.id).await.unwrap();
    let gate = async |user: &User, set: &str, replacement: Option<GateInput>| {
        let (project_id, test_set_id) = (project.id.clone(), set.to_owned());
        let request = GetGateRequest { project_id, test_set_id, replacement };
        let mut lookup = LookupServiceClient::new(user.channel.clone());
        lookup.get_gate(user.call(request)).await.map(Response::into_inner)
    };
    assert_eq!(Some(gate(&user, &set.id, None).await.unwrap()), set.gate);
    let all = GateInput {
        min_pass_rate: Some(97.5),
        required_test_cases: vec!["LOGIN-1".into()],
        flaky_within_runs: Some(20),
        ..GateInput::default()
    };
    let expected = Gate {
        min_pass_rate: Some(97.5),
        required_test_cases: vec!["LOGIN-1".into()],
        flaky_within_runs: Some(20),
        ..defaults()
    };
    assert_eq!(gate(&user, &set.id, Some(all)).await.unwrap(), expected);
    assert_eq!(user.get_set(&set.id).await.unwrap(), set, "nothing is replaced");

    let wrong = GateInput { flaky_within_runs: Some(4), ..GateInput::default() };
    assert_eq!(invalid_fields(gate(&user, &set.id, Some(wrong)).await), ["Gate/FlakyWithinRuns"]);
    assert_eq!(fault(gate(&user, &project.id, None).await), "not_found");
    assert_eq!(fault(gate(&world.user().await, &set.id, None).await), "not_found");
}

#[tokio::test]
async fn a_snapshot_copies_the_rules_and_the_default_branch() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let case = user.case(&project, "a").await;
    user.ready_plan(&case).await;
    let set = user.set(&project, &[&case]).await;
    let snapshot = take_snapshot(&user, target(&set), false).await.unwrap();
    assert_eq!(snapshot.gate, Some(defaults()));
    assert_eq!(snapshot.default_branch, "main");

    // The largest rules.
    let required_test_cases =
        (0..1000).map(|n| format!("{n:0>4}{}", "\u{e9}".repeat(251))).collect();
    let rules = GateInput { required_test_cases, ..GateInput::default() };
    let set = user.update_set(&set, input(rules), &["Gate"]).await.unwrap();
    let request = user.call(UpdateProjectRequest {
        id: project.id.clone(),
        changes: Some(ProjectInput {
            default_branch: Some("trunk".into()),
            ..ProjectInput::default()
        }),
        fields: vec!["DefaultBranch".into()],
        ..UpdateProjectRequest::default()
    });
    user.projects().update_project(request).await.unwrap();
    let snapshot = take_snapshot(&user, target(&set), false).await.unwrap();
    assert_eq!(snapshot.gate, set.gate);
    assert_eq!(snapshot.gate.map(|gate| gate.required_test_cases.len()), Some(1000));
    assert_eq!(snapshot.default_branch, "trunk");
    assert_eq!(snapshot.test_cases.len(), 1);
}
