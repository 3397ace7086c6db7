//! What other services tell becomes notifications.

use anyhow::Result;
use assay_events::Event;
use assay_proto::{
    ExecutionId, ExecutionStatistic, ExecutionStatus, ReportStatus, TestCaseId, TestPlanId,
    TestReportId, TestResult, TestSetId, Timestamp,
    events::{ExecutionChanged, RecordChanged, ReportState, ReportsChanged},
    notification::Notification,
};
use assay_testkit::TestUser;

use crate::world::{World, notification};

/// What a notification says: source and its id, target and its id, action, state.
type Said = [String; 6];

fn said(notification: &Notification) -> Said {
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
    };
    Ok(Event::new(user.customer, "1", "record", action, &change)?)
}

#[tokio::test]
async fn changes_of_records_become_notifications_and_are_published() -> Result<()> {
    let world = World::new().await?;
    let (user, stranger) = (world.user().await, world.user().await);
    let own = world.create(&user, notification()).await?;
    let (catalog, identity) = (world.teller("catalog").await?, world.teller("identity").await?);
    for action in ["Created", "Changed", "Archived", "Unarchived", "Deleted"] {
        catalog.tell(&record_changed(&user, "TestCase", action)?).await?;
    }
    let from_catalog = world.sees(&user, 6).await;
    identity.tell(&record_changed(&user, "User", "Created")?).await?;
    let all = world.sees(&user, 7).await;

    assert_eq!(said(&all[0]), ["User", "1", "Project", "2", "Created", "None"]);
    let actions: Vec<_> = all[1..6].iter().map(|one| one.action.as_str()).collect();
    assert_eq!(actions, ["Deleted", "Unarchived", "Archived", "Changed", "Created"]);
    assert_eq!(all[1..], from_catalog);
    assert_eq!(all[6], own);
    assert_eq!(world.list(&stranger).await?, []);
    // No more than these: a notification is not the cause of another one.
    assert_eq!(world.published().await?.len(), 7);
    assert_eq!(world.list(&user).await?.len(), 7);
    Ok(())
}

#[tokio::test]
async fn an_execution_is_told_of_when_it_is_requested_and_when_it_ends() -> Result<()> {
    let world = World::new().await?;
    let user = world.user().await;
    let execution = world.teller("execution").await?;
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
            ..ExecutionChanged::default()
        };
        execution.tell(&Event::new(user.customer, &id, "execution", action, &change)?).await?;
    }

    let said: Vec<Said> = world.sees(&user, 2).await.iter().rev().map(said).collect();
    assert_eq!(
        said,
        [
            ["TestSet", &set, "Execution", &id, "Requested", "Queued"],
            ["TestSet", &set, "Execution", &id, "Completed", "Completed"],
        ]
    );
    Ok(())
}

#[tokio::test]
async fn reports_of_one_event_become_one_notification_each() -> Result<()> {
    let world = World::new().await?;
    let user = world.user().await;
    let execution = world.teller("execution").await?;
    let states = [ReportStatus::InReview, ReportStatus::EngineExecutionFailure];
    let reports: Vec<ReportState> = states.into_iter().map(report).collect();
    let change = ReportsChanged {
        action: "Finished".to_owned(),
        reports: reports.clone(),
        ..ReportsChanged::default()
    };
    execution.tell(&Event::new(user.customer, "1", "test_report", "finished", &change)?).await?;

    let said: Vec<Said> = world.sees(&user, 2).await.iter().rev().map(said).collect();
    let expected = reports.iter().zip(["InReview", "EngineExecutionFailure"]);
    let expected: Vec<Said> = expected
        .map(|(report, state)| {
            let ReportState { id, test_case_id, .. } = report;
            ["TestCase", test_case_id, "TestReport", id, "Finished", state].map(str::to_owned)
        })
        .collect();
    assert_eq!(said, expected);
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
        ..ReportState::default()
    }
}

#[tokio::test]
async fn what_services_tell_only_each_other_is_passed_over() -> Result<()> {
    let world = World::new().await?;
    let user = world.user().await;
    let identity = world.teller("identity").await?;
    identity.tell(&Event::new(user.customer, "1", "token", "revoked", &"anything")?).await?;
    identity.tell(&record_changed(&user, "User", "Changed")?).await?;

    let seen = world.sees(&user, 1).await;
    assert_eq!(said(&seen[0]), ["User", "1", "Project", "2", "Changed", "None"]);
    assert_eq!(seen.len(), 1);
    Ok(())
}
