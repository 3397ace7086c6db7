//! States of test cases: muted ones do not count, and engines leave out skipped ones.

mod concurrent;

use anyhow::Result;
use assay_execution::publish_expired;
use assay_proto::{
    Batch, ExecutionStatus, ReportStatus, TestResult, Timestamp,
    catalog::{GateInput, TestSetInput},
    execution::{
        CaseState, Execution, GetTestCaseStateRequest, GetVerdictRequest,
        ListTestCaseStatesRequest, MuteInput, ReviewInput, TestCaseState, TestCaseStateInput,
        UpdateTestCaseStateRequest, Verdict, VerdictState,
        test_case_state_service_client::TestCaseStateServiceClient,
    },
};
use assay_rpc::grpc::Channel;
use futures::TryStreamExt;
use serde_json::json;
use tonic::{Code, Status};

use crate::{
    changes::{failed, passed, reports, run, summary},
    known_failures::{accepted, in_days, review, reviewer},
    world::{World, fields, instance},
};

impl World {
    fn case_states(&self) -> TestCaseStateServiceClient<Channel> {
        TestCaseStateServiceClient::new(self.execution.clone())
    }
}

/// Returns the id of a test case of an execution.
pub(crate) fn case_of(execution: &Execution, identifier: &str) -> String {
    let mut reports = execution.test_reports.iter();
    let report = reports.find(|report| report.test_case_identifier == identifier);
    report.unwrap().test_case_id.clone()
}

fn input(state: CaseState, until: Option<Timestamp>) -> TestCaseStateInput {
    TestCaseStateInput {
        state: state.into(),
        until,
        ticket: Some("SHOP-7".to_owned()),
        reason: Some("fails at random".to_owned()),
        owner: None,
    }
}

/// Changes the state of a test case, in the version that the client has seen.
async fn change(
    world: &World,
    case: &str,
    changes: TestCaseStateInput,
    data_version: Option<String>,
) -> Result<TestCaseState, Status> {
    let mut fields = vec!["State"];
    fields.extend(changes.until.map(|_| "Until"));
    fields.extend(changes.ticket.is_some().then_some("Ticket"));
    fields.extend(changes.reason.is_some().then_some("Reason"));
    fields.extend(changes.owner.is_some().then_some("Owner"));
    let request = UpdateTestCaseStateRequest {
        project_id: world.project.clone(),
        test_case_id: case.to_owned(),
        data_version,
        changes: Some(changes),
        fields: fields.into_iter().map(str::to_owned).collect(),
    };
    let request = reviewer(world).await.call(request);
    Ok(world.case_states().update_test_case_state(request).await?.into_inner())
}

/// Mutes or skips a test case for a week.
pub(crate) async fn set(
    world: &World,
    case: &str,
    state: CaseState,
) -> Result<TestCaseState, Status> {
    change(world, case, input(state, Some(in_days(7))), None).await
}

pub(crate) async fn enable(world: &World, case: &str) -> Result<TestCaseState, Status> {
    let input = TestCaseStateInput { state: CaseState::Enabled.into(), ..Default::default() };
    change(world, case, input, None).await
}

pub(crate) async fn get(world: &World, case: &str) -> Result<TestCaseState, Status> {
    let (project_id, test_case_id) = (world.project.clone(), case.to_owned());
    let request = GetTestCaseStateRequest { project_id, test_case_id };
    Ok(world.case_states().get_test_case_state(world.user.call(request)).await?.into_inner())
}

async fn list(world: &World, state: CaseState) -> Result<Vec<TestCaseState>, Status> {
    let (project_id, state) = (world.project.clone(), state.into());
    let request = ListTestCaseStatesRequest { project_id, state, page: None };
    let batches = world.case_states().list_test_case_states(world.user.call(request)).await?;
    let batches: Vec<_> = batches.into_inner().try_collect().await?;
    Ok(batches.iter().flat_map(|batch| batch.parse().unwrap()).collect())
}

async fn verdict(world: &World, execution: &Execution) -> Result<Verdict, Status> {
    let request = GetVerdictRequest { project_id: None, execution_id: execution.id.clone() };
    Ok(world.executions().get_verdict(world.user.call(request)).await?.into_inner())
}

/// Returns the number of muted test cases, and the state of the verdict.
async fn muted(world: &World, execution: &Execution) -> Result<(i32, VerdictState)> {
    let muted = summary(world, execution).await?.changes.unwrap().muted;
    Ok((muted, verdict(world, execution).await?.state()))
}

/// Returns the actions of the events of states, in order.
async fn actions(world: &World) -> Result<Vec<String>> {
    publish_expired(&world.db).await?;
    let events = world.events().await?.into_iter();
    let actions =
        events.filter_map(|(name, _)| name.strip_prefix("test_case_state.").map(str::to_owned));
    Ok(actions.collect())
}

#[tokio::test]
async fn failures_of_a_muted_test_case_are_shown_and_do_not_count_until_its_end() -> Result<()> {
    let world = World::new().await?;
    let results = || json!([failed("a", "lost"), passed("b")]);
    run(&world, "main", json!([passed("a"), passed("b")])).await?;
    let first = run(&world, "first", results()).await?;
    assert_eq!(muted(&world, &first).await?, (0, VerdictState::Failed));
    let a = case_of(&first, "a");

    let state = set(&world, &a, CaseState::Muted).await?;

    assert_eq!((state.state(), state.test_case_identifier()), (CaseState::Muted, "a"));
    assert_eq!((state.owner.as_str(), state.ticket.as_str()), (state.changed_by(), "SHOP-7"));
    assert_eq!(muted(&world, &first).await?.0, 0, "only later executions are muted");
    let second = run(&world, "other", results()).await?;
    assert_eq!(muted(&world, &second).await?, (1, VerdictState::Passed));
    let report = reports(&world, &second).await?.remove(0);
    assert_eq!((report.result(), report.is_muted), (TestResult::Failed, true));
    assert_eq!(report.ticket, "SHOP-7");
    let other = run(&world, "third", json!([failed("b", "lost")])).await?;
    assert_eq!(muted(&world, &other).await?, (0, VerdictState::Failed), "b is another test case");

    world.change("update test_case_state set until = now()").await?;
    assert_eq!(get(&world, &a).await?.state(), CaseState::Enabled, "at once");
    let third = run(&world, "fourth", results()).await?;
    assert_eq!(muted(&world, &third).await?, (0, VerdictState::Failed));
    assert_eq!(actions(&world).await?, ["created", "expired"]);
    assert_eq!(muted(&world, &second).await?.0, 1, "what was muted stays muted");
    assert_eq!(world.differences().await?, 0);
    assert_eq!(assay_execution::rebuild(&world.db).await?, 0);
    assert_eq!(muted(&world, &second).await?.0, 1);
    Ok(())
}

#[tokio::test]
async fn changes_of_a_state_are_published_and_versioned() -> Result<()> {
    let world = World::new().await?;
    let execution = run(&world, "main", json!([failed("a", "lost"), passed("b")])).await?;
    let (a, b) = (case_of(&execution, "a"), case_of(&execution, "b"));
    assert_eq!(get(&world, &a).await?.state(), CaseState::Enabled);
    enable(&world, &a).await?;
    assert!(actions(&world).await?.is_empty(), "it was enabled");

    let state = set(&world, &a, CaseState::Muted).await?;
    let (_, data) = world.events().await?.into_iter().next_back().unwrap();
    let expected = json!({
        "Source": "TestCaseState", "SourceId": a, "Target": "Project",
        "TargetId": world.project, "Action": "Created", "ProjectId": world.project,
        "RecordVersion": state.data_version, "Actor": data["Actor"],
    });
    assert_eq!(data, expected);
    assert_eq!(data["Actor"]["Name"], "Ada Lovelace");
    let version = Some(state.data_version.clone());
    let skip = TestCaseStateInput { state: CaseState::Skipped.into(), ..Default::default() };
    let skipped = change(&world, &a, skip.clone(), version.clone()).await?;
    assert_eq!((skipped.state(), skipped.until), (CaseState::Skipped, state.until), "it is kept");
    assert_eq!(skipped.reason, "fails at random");
    let refused = change(&world, &a, skip, version).await.unwrap_err();
    assert_eq!(refused.code(), Code::Aborted);

    set(&world, &b, CaseState::Muted).await?;
    let of = async |state| {
        let states = list(&world, state).await?.into_iter();
        Ok::<_, Status>(states.map(|one| one.test_case_identifier.unwrap()).collect::<Vec<_>>())
    };
    assert_eq!(of(CaseState::Skipped).await?, ["a"]);
    assert_eq!(of(CaseState::Muted).await?, ["b"]);
    assert_eq!(of(CaseState::Unspecified).await?.len(), 2);
    enable(&world, &a).await?;
    assert!(of(CaseState::Skipped).await?.is_empty());
    assert_eq!(actions(&world).await?, ["created", "changed", "created", "deleted"]);
    Ok(())
}

#[tokio::test]
async fn invalid_states_are_refused_with_reasons() -> Result<()> {
    let world = World::new().await?;
    let execution = run(&world, "main", json!([failed("a", "lost")])).await?;
    let a = case_of(&execution, "a");
    let valid = input(CaseState::Muted, Some(in_days(89)));
    for (field, input) in [
        ("Until", TestCaseStateInput { until: None, ..valid.clone() }),
        ("Until", TestCaseStateInput { until: Some(in_days(91)), ..valid.clone() }),
        ("Until", TestCaseStateInput { until: Some(in_days(-1)), ..valid.clone() }),
        ("Ticket", TestCaseStateInput { ticket: Some("x".repeat(256)), ..valid.clone() }),
        ("Owner", TestCaseStateInput { owner: Some("x\ny".to_owned()), ..valid.clone() }),
        ("Reason", TestCaseStateInput { reason: Some("x".repeat(1001)), ..valid.clone() }),
    ] {
        let refused = change(&world, &a, input, None).await.unwrap_err();
        assert_eq!(fields(&refused), [field]);
    }
    let unknown = change(&world, &execution.id, valid.clone(), None).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
    let request = UpdateTestCaseStateRequest {
        project_id: world.project.clone(),
        test_case_id: a,
        changes: Some(valid),
        ..Default::default()
    };
    let denied = world.case_states().update_test_case_state(world.user.call(request)).await;
    assert_eq!(denied.unwrap_err().code(), Code::PermissionDenied);
    Ok(())
}

#[tokio::test]
async fn engines_leave_out_skipped_test_cases() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1), ("b", 2), ("c", 1)]).await?;
    let external = world.start().await?;
    let b = case_of(&external, "b");
    set(&world, &b, CaseState::Skipped).await?;

    let execution = world.dispatch().await?;

    assert_eq!(execution.status(), ExecutionStatus::Queued, "nothing has begun");
    let engine = world.engine();
    for identifier in ["a", "c"] {
        let lease = engine.lease_one().await?;
        assert_eq!(lease.test_case.unwrap().identifier, identifier);
        engine.report(&lease.id, json!([instance(1, "Passed")])).await?;
        engine.complete(&lease.id, false).await?;
    }
    let ended = world.execution(&execution.id).await?;
    assert_eq!((ended.status(), ended.result()), (ExecutionStatus::Completed, TestResult::Passed));
    assert_eq!(verdict(&world, &execution).await?.state(), VerdictState::Passed);
    let skipped = &ended.test_reports[1];
    assert_eq!(
        (skipped.result(), skipped.status()),
        (TestResult::Canceled, ReportStatus::Canceled)
    );
    let comment = skipped.comment.as_deref().unwrap_or_default();
    assert!(comment.starts_with("Skipped until 20"), "{comment}");
    assert!(comment.ends_with(", SHOP-7, fails at random"), "{comment}");

    // A runner that leaves it out has not broken off.
    let results = json!([passed("a"), passed("c")]);
    world.report(&external.id, results).await?;
    let ended = world.complete(&external.id).await?;
    assert_eq!(ended.test_reports[1].result(), TestResult::Canceled);
    assert_eq!(verdict(&world, &external).await?.state(), VerdictState::Passed);
    assert_eq!(world.differences().await?, 0);

    enable(&world, &b).await?;
    let again = world.dispatch().await?;
    assert_eq!(again.test_reports[1].status(), ReportStatus::NotExecuted);
    Ok(())
}

#[tokio::test]
async fn a_required_test_case_that_is_skipped_was_not_executed() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1), ("b", 1)]).await?;
    let gate = GateInput { required_test_cases: vec!["b".to_owned()], ..Default::default() };
    let changes = TestSetInput { gate: Some(gate), ..TestSetInput::default() };
    world.change_set(changes, &["Gate"]).await?;
    let b = case_of(&world.start().await?, "b");
    set(&world, &b, CaseState::Skipped).await?;
    let execution = world.dispatch().await?;
    let lease = world.engine().lease_one().await?;
    world.engine().report(&lease.id, json!([instance(1, "Passed")])).await?;
    world.engine().complete(&lease.id, false).await?;

    let verdict = verdict(&world, &execution).await?;

    let unmet: Vec<_> = verdict.rules.iter().filter(|rule| !rule.is_met).collect();
    assert_eq!(unmet.len(), 1);
    assert_eq!(unmet[0].message, "1 of 1 not executed: b");
    Ok(())
}

#[tokio::test]
async fn an_execution_of_skipped_test_cases_ends_at_once() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let a = case_of(&world.start().await?, "a");
    set(&world, &a, CaseState::Skipped).await?;

    let execution = world.dispatch().await?;

    assert_eq!(execution.status(), ExecutionStatus::Completed);
    assert!(execution.completion_date_time.is_some());
    assert_eq!(world.engine().lease_one().await.unwrap_err().code(), Code::NotFound);
    assert_eq!(verdict(&world, &execution).await?.rules[0].message, "no test case was executed");
    assert_eq!(world.differences().await?, 0);
    Ok(())
}

#[tokio::test]
async fn a_review_that_mutes_and_a_retry_see_the_state_of_their_moment() -> Result<()> {
    let world = World::new().await?;
    let variant = |cause: &str, variant: &str| {
        let mut result = failed("a", cause);
        result["Variant"] = json!(variant);
        result
    };
    let results = || json!([variant("lost", "linux"), variant("slow", "windows")]);
    let execution = run(&world, "main", results()).await?;
    let a = case_of(&execution, "a");
    let report = reports(&world, &execution).await?.remove(0);
    let mute = MuteInput { every_case: false, muted_until: Some(in_days(7)) };
    let one = ReviewInput {
        fingerprint: Some(report.fingerprint.clone()),
        known: Some(mute),
        ..accepted()
    };
    review(&world, &execution, one.clone()).await?;
    assert_eq!(muted(&world, &execution).await?.0, 0, "it also fails for another cause");
    set(&world, &a, CaseState::Muted).await?;
    review(&world, &execution, one).await?;
    assert_eq!(muted(&world, &execution).await?.0, 1, "the test case is muted now");
    assert_eq!(world.differences().await?, 0);
    Ok(())
}
