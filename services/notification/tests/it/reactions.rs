//! Events of other services that become notifications.

use std::ops::Range;

use anyhow::Result;
use assay_events::Event;
use assay_proto::{
    ExecutionId, ExecutionStatistic, ExecutionStatus, KnownFailureId, ProjectId, ReportStatus,
    ResultChange, TestCaseId, TestPlanId, TestReportId, TestResult, TestSetId, Timestamp,
    events::{
        ChangedRecord, ExecutionChanged, RecordChanged, RecordsChanged, ReportState, ReportsChanged,
    },
    execution::VerdictState,
    notification::Notification,
};
use assay_testkit::TestUser;

use crate::{
    receiver::{Behaviour, Receiver},
    world::{World, notification},
};

/// Source and its id, target and its id, action, and state of a notification.
type Fields = [String; 6];

fn fields(notification: &Notification) -> Fields {
    let Notification { source, source_id, target, target_id, action, state, .. } = notification;
    let target_id = target_id.as_deref().unwrap_or("-");
    [source, source_id, target, target_id, action, state].map(str::to_owned)
}

fn record_changed(user: &TestUser, source: &str, action: &str) -> Result<Event> {
    let change = RecordChanged {
        source: source.to_owned(),
        source_id: "1".to_owned(),
        target: "Project".to_owned(),
        target_id: Some("2".to_owned()),
        action: action.to_owned(),
        ..RecordChanged::default()
    };
    let noun = if source == "User" { "user" } else { "test_case" };
    Ok(Event::untyped(user.customer, "1", noun, action, &change)?)
}

#[tokio::test]
async fn changes_of_records_become_notifications_and_are_published() -> Result<()> {
    let world = World::new().await?;
    let (user, stranger) = (world.user().await, world.user().await);
    let own = world.create(&user, notification()).await?;
    let (catalog, identity) = (world.service("catalog").await?, world.service("identity").await?);
    for action in ["Created", "Changed", "Archived", "Unarchived", "Deleted"] {
        catalog.publish(&record_changed(&user, "TestCase", action)?).await?;
    }
    let from_catalog = world.wait_for(&user, 6).await;
    identity.publish(&record_changed(&user, "User", "Created")?).await?;
    let all = world.wait_for(&user, 7).await;

    assert_eq!(fields(&all[0]), ["User", "1", "Project", "2", "Created", "None"]);
    let actions: Vec<_> =
        all[1..6].iter().map(|notification| notification.action.as_str()).collect();
    assert_eq!(actions, ["Deleted", "Unarchived", "Archived", "Changed", "Created"]);
    assert_eq!(all[1..], from_catalog);
    assert_eq!(all[6], own);
    assert_eq!(world.list(&stranger).await?, []);
    // A notification does not cause another one.
    assert_eq!(world.published().await?.len(), 7);
    assert_eq!(world.list(&user).await?.len(), 7);
    Ok(())
}

#[tokio::test]
async fn a_change_of_an_execution_names_it_and_its_test_set() -> Result<()> {
    let world = World::new().await?;
    let user = world.user().await;
    let (execution, set) = (ExecutionId::new().to_string(), TestSetId::new().to_string());
    let change = |source: &str, id: &str, target: &str| RecordChanged {
        source: source.to_owned(),
        source_id: id.to_owned(),
        target: target.to_owned(),
        target_id: Some(set.clone()),
        action: "Archived".to_owned(),
        ..RecordChanged::default()
    };
    // A filter by test set selects what happens in it, not changes of the set itself.
    let events: Result<Vec<Event>> = [
        ("execution", change("Execution", &execution, "TestSet")),
        ("test_set", change("TestSet", &set, "Project")),
    ]
    .iter()
    .map(|(noun, data)| Ok(Event::untyped(user.customer, &data.source_id, noun, "archived", data)?))
    .collect();
    let [of_execution, of_set] = &events?[..] else { anyhow::bail!("two events") };
    world.service("execution").await?.publish(of_execution).await?;
    world.service("catalog").await?.publish(of_set).await?;
    for notification in world.wait_for(&user, 2).await {
        let ids = (notification.execution_id, notification.test_set_id);
        if notification.source == "Execution" {
            assert_eq!(ids, (Some(execution.clone()), Some(set.clone())));
        } else {
            assert_eq!(ids, (None, None));
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_change_of_several_records_becomes_a_notification_of_each() -> Result<()> {
    let world = World::new().await?;
    let user = world.user().await;
    let catalog = world.service("catalog").await?;
    let record = |number: u32| ChangedRecord { id: number.to_string(), target_id: "2".to_owned() };
    let change = |action: &str, records: Range<u32>| RecordsChanged {
        source: "TestCase".to_owned(),
        target: "Project".to_owned(),
        action: action.to_owned(),
        records: records.map(record).collect(),
        ..RecordsChanged::default()
    };
    let events: Result<Vec<Event>> = [change("Created", 0..3), change("Changed", 3..5)]
        .iter()
        .map(|data| Ok(Event::untyped(user.customer, "2", "test_cases", &data.action, data)?))
        .collect();
    catalog.publish_all(&events?).await?;

    let published: Vec<Fields> = world.wait_for(&user, 5).await.iter().rev().map(fields).collect();
    let of = |number: u32| {
        let action = if number < 3 { "Created" } else { "Changed" };
        ["TestCase", &number.to_string(), "Project", "2", action, "None"].map(str::to_owned)
    };
    assert_eq!(published, (0..5).map(of).collect::<Vec<_>>());
    Ok(())
}

#[tokio::test]
async fn many_events_become_notifications_in_order_each_in_its_trace() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let receiver = Receiver::start(Behaviour::Answer(204)).await?;
    world.subscribe(&user, &receiver).await?;
    let catalog = world.service("catalog").await?;
    let trace =
        |number: usize| format!("00-0af7651916cd43dd8448eb211c803{number:03}-b7ad6b7169203331-01");
    let events: Result<Vec<Event>> = (0..300)
        .map(|number| {
            // PostgreSQL rejects the id of one record.
            let source_id = if number == 200 { "\0".to_owned() } else { number.to_string() };
            let change = RecordChanged {
                source: "TestCase".to_owned(),
                source_id,
                target: "Project".to_owned(),
                target_id: None,
                action: "Created".to_owned(),
                ..RecordChanged::default()
            };
            let event = Event::untyped(user.customer, number, "test_case", "created", &change)?;
            Ok(event.with_trace([("traceparent".to_owned(), trace(number))].into()))
        })
        .collect();
    catalog.publish_all(&events?).await?;

    let expected: Vec<usize> = (0..300).filter(|number| *number != 200).collect();
    receiver.receives(expected.len()).await;
    let ids: Vec<String> = expected.iter().map(ToString::to_string).collect();
    let traces: Vec<String> = expected.iter().map(|number| trace(*number)).collect();
    for (statement, expected) in [
        ("select source_id from notification where source = 'TestCase' order by position", &ids),
        ("select data ->> 'SourceId' from outbox where noun = 'testcase' order by id", &ids),
        ("select trace ->> 'traceparent' from outbox where noun = 'testcase' order by id", &traces),
        (
            "select trace ->> 'traceparent' from webhook_delivery
             join notification on id = notification_id order by position",
            &traces,
        ),
    ] {
        let found: Vec<String> = sqlx::query_scalar(statement).fetch_all(&world.db).await?;
        assert_eq!(&found, expected, "{statement}");
    }
    Ok(())
}

#[tokio::test]
async fn an_execution_becomes_a_notification_when_it_is_requested_and_when_it_ends() -> Result<()> {
    let world = World::new().await?;
    let user = world.user().await;
    let execution = world.service("execution").await?;
    let (id, set) = (ExecutionId::new().to_string(), TestSetId::new().to_string());
    for (action, status) in [
        ("Requested", ExecutionStatus::Queued),
        ("Progressed", ExecutionStatus::Running),
        ("Completed", ExecutionStatus::Completed),
    ] {
        let change = ExecutionChanged {
            execution_id: id.clone(),
            test_set_id: set.clone(),
            action: action.to_owned(),
            status: status.into(),
            result: TestResult::NotExecuted.into(),
            statistic: Some(ExecutionStatistic {
                execution_request_time: Some(Timestamp::default()),
                ..ExecutionStatistic::default()
            }),
            verdict: (action == "Completed").then(|| VerdictState::Passed.into()),
            ..ExecutionChanged::default()
        };
        execution
            .publish(&Event::untyped(user.customer, &id, "execution", action, &change)?)
            .await?;
    }

    let published: Vec<Fields> = world.wait_for(&user, 3).await.iter().rev().map(fields).collect();
    assert_eq!(
        published,
        [
            ["TestSet", &set, "Execution", &id, "Requested", "Queued"],
            ["TestSet", &set, "Execution", &id, "Completed", "Completed"],
            ["Execution", &id, "TestSet", &set, "Judged", "Passed"],
        ]
    );
    Ok(())
}

#[tokio::test]
async fn each_report_of_an_event_becomes_a_notification() -> Result<()> {
    let world = World::new().await?;
    let user = world.user().await;
    let execution = world.service("execution").await?;
    let states = [ReportStatus::InReview, ReportStatus::EngineExecutionFailure];
    let reports: Vec<ReportState> = states.into_iter().map(report).collect();
    let change = ReportsChanged {
        action: "Finished".to_owned(),
        reports: reports.clone(),
        ..ReportsChanged::default()
    };
    execution
        .publish(&Event::untyped(user.customer, "1", "test_report", "finished", &change)?)
        .await?;

    let published: Vec<Fields> = world.wait_for(&user, 2).await.iter().rev().map(fields).collect();
    let expected = reports.iter().zip(["InReview", "EngineExecutionFailure"]);
    let expected: Vec<Fields> = expected
        .map(|(report, state)| {
            let ReportState { id, test_case_id, .. } = report;
            ["TestCase", test_case_id, "TestReport", id, "Finished", state].map(str::to_owned)
        })
        .collect();
    assert_eq!(published, expected);
    assert_eq!(world.published().await?.len(), 2);
    Ok(())
}

fn report(status: ReportStatus) -> ReportState {
    ReportState {
        id: TestReportId::new().to_string(),
        test_case_id: TestCaseId::new().to_string(),
        test_plan_id: TestPlanId::new().to_string(),
        result: TestResult::Passed.into(),
        status: status.into(),
        change: ResultChange::None.into(),
        ..ReportState::default()
    }
}

#[tokio::test]
async fn events_between_services_are_ignored() -> Result<()> {
    let world = World::new().await?;
    let user = world.user().await;
    let identity = world.service("identity").await?;
    identity.publish(&Event::untyped(user.customer, "1", "token", "revoked", &"anything")?).await?;
    identity.publish(&record_changed(&user, "User", "Changed")?).await?;

    let listed = world.wait_for(&user, 1).await;
    assert_eq!(fields(&listed[0]), ["User", "1", "Project", "2", "Changed", "None"]);
    assert_eq!(listed.len(), 1);
    Ok(())
}

#[tokio::test]
async fn the_end_of_a_known_failure_becomes_a_notification() -> Result<()> {
    let world = World::new().await?;
    let user = world.user().await;
    let execution = world.service("execution").await?;
    let (id, project) = (KnownFailureId::new().to_string(), ProjectId::new().to_string());
    for action in ["Created", "Expired"] {
        let change = RecordChanged {
            source: "KnownFailure".to_owned(),
            source_id: id.clone(),
            target: "Project".to_owned(),
            target_id: Some(project.clone()),
            action: action.to_owned(),
            ..RecordChanged::default()
        };
        let event = Event::untyped(user.customer, &id, "known_failure", action, &change)?;
        execution.publish(&event).await?;
    }

    let published: Vec<Fields> = world.wait_for(&user, 2).await.iter().rev().map(fields).collect();
    let of = |action| ["KnownFailure", &id, "Project", &project, action, "None"].map(str::to_owned);
    assert_eq!(published, ["Created", "Expired"].map(of));
    Ok(())
}
