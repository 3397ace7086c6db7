//! The contents of events, with which a receiver needs no request.

use anyhow::{Context, Result};
use assay_events::{Event, EventType, ExecutionAction, RecordKind};
use assay_proto::{
    Actor, ActorKind, AuditEntryId, ExecutionId, ExecutionStatistic, ExecutionStatus, ProjectId,
    TestCaseId, TestResult, TestSetId, Timestamp, UserId,
    events::{
        AuditRecorded, ChangedRecord, ExecutionChanged, FailedTestCase, RecordChanged,
        RecordsChanged,
    },
    execution::{ChangeCounts, RuleOutcome, VerdictState},
    notification::{NotificationFilter, WatchNotificationsRequest, WebhookInput},
};
use assay_records::Action;
use assay_testkit::TestUser;
use serde_json::{Value, json};
use tokio::time::{Duration, timeout};

use crate::{
    receiver::{Behaviour, Receiver},
    webhook::webhook_to,
    world::{World, notification},
};

/// Returns a token of a user as an actor.
fn token() -> Actor {
    Actor {
        kind: ActorKind::Token.into(),
        user_id: Some(UserId::new().to_string()),
        name: "Ada".to_owned(),
        token_id: Some("019cade2-11c0-779f-8491-6e652d066e91".to_owned()),
    }
}

fn failed(identifier: &str) -> FailedTestCase {
    FailedTestCase {
        id: TestCaseId::new().to_string(),
        identifier: identifier.to_owned(),
        name: "Pay".to_owned(),
        result: TestResult::Failed.into(),
        owners: vec!["Checkout team".to_owned()],
    }
}

/// Returns the state of an execution with failures.
fn execution(status: ExecutionStatus) -> ExecutionChanged {
    ExecutionChanged {
        execution_id: ExecutionId::new().to_string(),
        project_id: ProjectId::new().to_string(),
        test_set_id: TestSetId::new().to_string(),
        status: status.into(),
        result: TestResult::Failed.into(),
        revision: 42,
        statistic: Some(ExecutionStatistic {
            execution_request_time: Some(Timestamp::default()),
            test_cases_total: 3,
            test_cases_passed: 2,
            test_cases_failed: 1,
            ..ExecutionStatistic::default()
        }),
        run_duration_in_sec: 8.5,
        test_set_name: Some("Nightly".to_owned()),
        branch: Some("main".to_owned()),
        commit: Some("3f2c1d0".to_owned()),
        build: Some("1205".to_owned()),
        ci_url: Some("https://ci.example.com/1205".to_owned()),
        actor: Some(token()),
        ..ExecutionChanged::default()
    }
}

impl World {
    /// Publishes events of a service, and returns the data of the notifications that follow, in order.
    async fn data_of(
        &self,
        service: &'static str,
        events: &[Event],
        user: &TestUser,
        count: usize,
    ) -> Result<Vec<Value>> {
        self.service(service).await?.publish_all(events).await?;
        self.wait_for(user, count).await;
        let published = self.published().await?;
        let events = published.iter().map(|message| serde_json::from_slice(&message.payload));
        let events: Vec<Value> = events.collect::<Result<_, _>>()?;
        let of_assay = events.iter().all(|event| event["source"] == "/assay/notifications");
        assert!(of_assay, "{events:#?}");
        Ok(events.into_iter().map(|event| event["data"].clone()).collect())
    }
}

/// Checks what every event about an execution says.
fn assert_leads_to(data: &Value, change: &ExecutionChanged) {
    let ExecutionChanged { execution_id, project_id, test_set_id, .. } = change;
    let expected = json!({
        "ProjectId": project_id, "TestSetId": test_set_id, "TestSetName": "Nightly",
        "ExecutionId": execution_id, "Result": "Failed", "Branch": "main", "Commit": "3f2c1d0",
        "Build": "1205", "CiUrl": "https://ci.example.com/1205", "DurationInSec": 8.5,
        "RecordVersion": "42", "Origin": "Assay",
        "Path": format!("/api/projects/{project_id}/executions/{execution_id}"),
        "Url": format!("https://assay.test/executions/{execution_id}"),
    });
    for (field, expected) in expected.as_object().into_iter().flatten() {
        assert_eq!(data[field], *expected, "{field}");
    }
    assert_eq!(data["Actor"]["Kind"], "Token");
    assert_eq!(data["Actor"]["Name"], "Ada");
    assert_eq!(data["Statistic"]["TestCasesTotal"], 3);
    assert_eq!(data["Statistic"]["TestCasesFailed"], 1);
}

#[tokio::test]
async fn the_end_of_an_execution_has_its_counts_changes_and_verdict() -> Result<()> {
    let world = World::new().await?;
    let user = world.user().await;
    let outcome = RuleOutcome {
        rule: "NewFailures".to_owned(),
        is_met: false,
        message: "1 new failure, at most 0 are allowed".to_owned(),
    };
    let change = ExecutionChanged {
        action: "Completed".to_owned(),
        failed_test_cases: vec![failed("checkout.pay")],
        changes: Some(ChangeCounts { new: 1, fixed: 2, ..ChangeCounts::default() }),
        verdict: Some(VerdictState::Failed.into()),
        rules: vec![outcome],
        ..execution(ExecutionStatus::Completed)
    };
    let completed = EventType::Execution(ExecutionAction::Completed);
    let event = Event::new(user.customer, &change.execution_id, completed, &change)?;
    let data = world.data_of("execution", &[event], &user, 2).await?;
    let names: Vec<_> = data.iter().map(|data| (&data["Source"], &data["Action"])).collect();
    assert_eq!(
        names,
        [(&json!("TestSet"), &json!("Completed")), (&json!("Execution"), &json!("Judged"))]
    );
    for data in &data {
        assert_leads_to(data, &change);
        assert_eq!((&data["Changes"]["New"], &data["Changes"]["Fixed"]), (&json!(1), &json!(2)));
        assert_eq!(
            (&data["Verdict"], &data["Rules"][0]["IsMet"]),
            (&json!("Failed"), &json!(false))
        );
        assert_eq!(data["FailedTestCases"][0]["Identifier"], "checkout.pay");
    }
    Ok(())
}

#[tokio::test]
async fn a_running_execution_is_failing_with_its_first_failure() -> Result<()> {
    let world = World::new().await?;
    let user = world.user().await;
    let change = ExecutionChanged {
        action: "Progressed".to_owned(),
        first_failure: Some(failed("checkout.pay")),
        ..execution(ExecutionStatus::Running)
    };
    let progressed = EventType::Execution(ExecutionAction::Progressed);
    let event = Event::new(user.customer, &change.execution_id, progressed, &change)?;
    let [data] = &world.data_of("execution", &[event], &user, 1).await?[..] else {
        panic!("one event")
    };
    assert_leads_to(data, &change);
    assert_eq!((&data["Action"], &data["State"]), (&json!("Failing"), &json!("Running")));
    assert_eq!(data["FailedTestCases"][0]["Identifier"], "checkout.pay");
    assert_eq!((&data["Verdict"], &data["Changes"]), (&Value::Null, &Value::Null));
    Ok(())
}

#[tokio::test]
async fn an_execution_that_no_engine_takes_is_waiting() -> Result<()> {
    let world = World::new().await?;
    let user = world.user().await;
    let change =
        ExecutionChanged { action: "Waiting".to_owned(), ..execution(ExecutionStatus::Queued) };
    let waiting = EventType::Execution(ExecutionAction::Waiting);
    let event = Event::new(user.customer, &change.execution_id, waiting, &change)?;
    let [data] = &world.data_of("execution", &[event], &user, 1).await?[..] else {
        panic!("one event")
    };
    assert_leads_to(data, &change);
    assert_eq!((&data["Action"], &data["State"]), (&json!("Waiting"), &json!("Queued")));
    Ok(())
}

#[tokio::test]
async fn the_event_of_a_record_leads_to_it_unless_it_is_deleted() -> Result<()> {
    let world = World::new().await?;
    let user = world.user().await;
    let (project, case) = (ProjectId::new().to_string(), TestCaseId::new().to_string());
    let event = |action: Action, version: Option<&str>| {
        let change = RecordChanged {
            source: "TestCase".to_owned(),
            source_id: case.clone(),
            target: "Project".to_owned(),
            target_id: Some(project.clone()),
            action: action.name().to_owned(),
            project_id: Some(project.clone()),
            record_version: version.map(ToOwned::to_owned),
            actor: Some(token()),
        };
        let event_type = EventType::Record(RecordKind::TestCase, action);
        Event::new(user.customer, &case, event_type, &change)
    };
    let events = [event(Action::Changed, Some("7"))?, event(Action::Deleted, None)?];
    let data = world.data_of("catalog", &events, &user, 2).await?;
    let path = format!("/api/projects/{project}/testcases/{case}");
    let url = format!("https://assay.test/cases/{case}");
    for (data, [path, url, version]) in data
        .iter()
        .zip([[json!(path), json!(url), json!("7")], [Value::Null, Value::Null, Value::Null]])
    {
        assert_eq!((&data["Path"], &data["Url"], &data["RecordVersion"]), (&path, &url, &version));
        assert_eq!(data["ProjectId"], project);
        assert_eq!(data["Actor"]["Kind"], "Token");
    }
    Ok(())
}

#[tokio::test]
async fn each_of_several_new_records_has_its_path_its_version_and_the_actor() -> Result<()> {
    let world = World::new().await?;
    let user = world.user().await;
    let project = ProjectId::new().to_string();
    let record = || ChangedRecord { id: TestCaseId::new().to_string(), target_id: project.clone() };
    let change = RecordsChanged {
        source: "TestCase".to_owned(),
        target: "Project".to_owned(),
        action: "Created".to_owned(),
        records: vec![record(), record()],
        project_id: Some(project.clone()),
        actor: Some(token()),
    };
    let created = EventType::Records(RecordKind::TestCase, Action::Created);
    let event = Event::new(user.customer, &project, created, &change)?;
    let data = world.data_of("catalog", &[event], &user, 2).await?;
    for (data, record) in data.iter().zip(&change.records) {
        assert_eq!(data["Path"], format!("/api/projects/{project}/testcases/{}", record.id));
        assert_eq!((&data["RecordVersion"], &data["Actor"]["Name"]), (&json!("1"), &json!("Ada")));
    }
    Ok(())
}

#[tokio::test]
async fn entries_of_the_audit_log_are_shown_to_those_who_may_manage_users() -> Result<()> {
    let world = World::new().await?;
    let manager = world.manager().await;
    let receiver = Receiver::start(Behaviour::Answer(204)).await?;
    let events = vec!["AuditEntry.*".to_owned()];
    world.add_webhook(&manager, WebhookInput { events, ..webhook_to(&receiver.url) }).await?;
    let entry = AuditRecorded {
        id: AuditEntryId::new().to_string(),
        action: "ApiTokenCreated".to_owned(),
        target: Some("ApiToken".to_owned()),
        target_id: Some("1".to_owned()),
        actor: Some(token()),
    };
    let event = Event::new(manager.customer, &entry.id, EventType::Audited, &entry)?;
    world.service("identity").await?.publish(&event).await?;
    let request = receiver.first().await?;
    let sent: Value = serde_json::from_slice(&request.body)?;
    assert_eq!(sent["type"], "io.assay.notifications.auditentry.apitokencreated.v1");
    let data = &sent["data"];
    assert_eq!((&data["SourceId"], &data["TargetId"]), (&json!(entry.id), &json!("1")));
    assert_eq!((&data["Actor"]["Kind"], &data["Path"]), (&json!("Token"), &Value::Null));

    let filter = || NotificationFilter {
        event: Some("AuditEntry.ApiTokenCreated".to_owned()),
        ..NotificationFilter::default()
    };
    let watch = || WatchNotificationsRequest {
        after: Some(0),
        filter: Some(filter()),
        ..WatchNotificationsRequest::default()
    };
    assert_eq!(world.list_filtered(&manager, filter()).await?.len(), 1);
    let mut seen = world.client.clone().watch_notifications(manager.call(watch())).await?;
    let message = timeout(Duration::from_secs(20), seen.get_mut().message()).await??;
    assert_eq!(message.context("an event")?.event_id, sent["id"]);

    let reader = world.colleague(&manager, "Read").await;
    assert!(world.list_filtered(&reader, filter()).await?.is_empty());
    assert!(world.list(&reader).await?.iter().all(|one| one.source != "AuditEntry"));
    let request = WatchNotificationsRequest { after: Some(0), ..Default::default() };
    let mut hidden = world.client.clone().watch_notifications(reader.call(request)).await?;
    // The entry is between these two.
    world.create(&manager, notification()).await?;
    for expected in ["Webhook", "TestCase"] {
        let message = timeout(Duration::from_secs(20), hidden.get_mut().message()).await??;
        let event: Value = serde_json::from_str(&message.context("an event")?.event)?;
        assert_eq!(event["data"]["Source"], expected);
    }
    Ok(())
}
