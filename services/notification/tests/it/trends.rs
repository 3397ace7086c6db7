//! Filters by the trend and the test set of executions: a webhook that is sent what gets worse.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use assay_events::{Event, EventType, ExecutionAction};
use assay_proto::{
    ExecutionId, ExecutionStatus, ProjectId, TestResult, TestSetId, Trend,
    events::{ExecutionChanged, OwnerTrend},
    execution::VerdictState,
    notification::{Notification, NotificationFilter, WebhookInput},
};
use assay_testkit::TestUser;
use serde_json::Value;

use crate::{
    receiver::{Behaviour, Receiver},
    webhook::webhook_to,
    world::World,
};

/// Returns the event that an execution of a test set has ended, with this trend.
fn ended(user: &TestUser, set: TestSetId, trend: Option<Trend>) -> Result<Event> {
    let has_passed = matches!(trend, Some(Trend::Better | Trend::Same));
    let (result, verdict) = if has_passed {
        (TestResult::Passed, VerdictState::Passed)
    } else {
        (TestResult::Failed, VerdictState::Failed)
    };
    let change = ExecutionChanged {
        execution_id: ExecutionId::new().to_string(),
        project_id: ProjectId::new().to_string(),
        test_set_id: set.to_string(),
        action: "Completed".to_owned(),
        status: ExecutionStatus::Completed.into(),
        result: result.into(),
        verdict: Some(verdict.into()),
        trend: trend.map(Into::into),
        revision: 3,
        ..ExecutionChanged::default()
    };
    completed(user, &change)
}

fn completed(user: &TestUser, change: &ExecutionChanged) -> Result<Event> {
    let completed = EventType::Execution(ExecutionAction::Completed);
    Ok(Event::new(user.customer, &change.execution_id, completed, change)?)
}

/// Returns the event that an execution is worse than the one before, with the trends of these owners.
fn worse(user: &TestUser, owners: &[(&str, Trend)]) -> Result<Event> {
    let of_owners = owners
        .iter()
        .map(|(owner, trend)| OwnerTrend { owner: (*owner).to_owned(), trend: (*trend).into() });
    let change = ExecutionChanged {
        execution_id: ExecutionId::new().to_string(),
        action: "Completed".to_owned(),
        status: ExecutionStatus::Completed.into(),
        result: TestResult::Failed.into(),
        trend: Some(Trend::Worse.into()),
        owners: owners.iter().map(|(owner, _)| (*owner).to_owned()).collect(),
        owner_trends: of_owners.collect(),
        ..ExecutionChanged::default()
    };
    completed(user, &change)
}

#[tokio::test]
async fn a_webhook_is_sent_only_what_gets_worse_in_its_test_sets() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let execution = world.service("execution").await?;
    let [nightly, smoke] = [TestSetId::new(), TestSetId::new()];
    let receiver = Receiver::start(Behaviour::Answer(204)).await?;
    let webhook = WebhookInput {
        events: vec!["TestSet.Completed".to_owned()],
        test_set_ids: vec![nightly.to_string()],
        trends: vec![Trend::Worse.into()],
        ..webhook_to(&receiver.url)
    };
    world.add_webhook(&user, webhook).await?;

    for set in [nightly, smoke] {
        for trend in [Some(Trend::Same), Some(Trend::Worse), Some(Trend::Better), None] {
            execution.publish(&ended(&user, set, trend)?).await?;
        }
    }
    // Each has two notifications, and there is that of the webhook.
    let all = world.wait_for(&user, 2 * 8 + 1).await;

    let is_worse = all.iter().filter(|one| {
        one.action == "Completed"
            && one.trend == Some(Trend::Worse.into())
            && one.test_set_id == Some(nightly.to_string())
    });
    let [worse] = &is_worse.collect::<Vec<_>>()[..] else { panic!("one of them") };
    let request = receiver.first().await?;
    let sent: Value = serde_json::from_slice(&request.body)?;
    assert_eq!(sent["id"], worse.id);
    assert_eq!(sent["data"]["Trend"], "Worse");
    let deliveries = sqlx::query_scalar::<_, i64>("select count(*) from webhook_delivery");
    assert_eq!(deliveries.fetch_one(&world.db).await?, 1);

    let filter = |trend: &str, set: TestSetId| NotificationFilter {
        event: Some("TestSet.Completed".to_owned()),
        trend: Some(trend.to_owned()),
        test_set_id: Some(set.to_string()),
        ..NotificationFilter::default()
    };
    let listed = world.list_filtered(&user, filter("worse", nightly)).await?;
    assert_eq!(listed.first().context("one")?.id, worse.id);
    assert_eq!(listed.len(), 1);
    let listed = world.list_filtered(&user, filter("Worse, better", smoke)).await?;
    let trends: Vec<_> = listed.iter().map(Notification::trend).collect();
    assert_eq!(trends.len(), 2);
    assert!(trends.contains(&Trend::Worse) && trends.contains(&Trend::Better));
    Ok(())
}

#[tokio::test]
async fn with_owners_the_trend_is_that_of_their_own_tests() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let execution = world.service("execution").await?;
    let (ada, depot) = ("Ada", "Depot TEAM");
    let mut receivers = Vec::new();
    for owners in [vec!["ada"], vec!["depot team"], vec!["Nobody", "Depot Team"], vec![]] {
        let receiver = Receiver::start(Behaviour::Answer(204)).await?;
        let webhook = WebhookInput {
            events: vec!["TestSet.Completed".to_owned()],
            trends: vec![Trend::Worse.into()],
            owners: owners.iter().map(|owner| (*owner).to_owned()).collect(),
            ..webhook_to(&receiver.url)
        };
        let webhook = world.add_webhook(&user, webhook).await?;
        receivers.push((owners, receiver, webhook.id));
    }

    // All of them are worse as a whole.
    for owners in [
        &[(ada, Trend::Same), (depot, Trend::Worse)][..],
        &[(ada, Trend::Worse), (depot, Trend::Better)],
        &[(ada, Trend::Same), (depot, Trend::Same)],
        &[],
    ] {
        execution.publish(&worse(&user, owners)?).await?;
    }
    let all = world.wait_for(&user, receivers.len() + 2 * 4).await;
    let ends: Vec<_> = all.iter().filter(|one| one.action == "Completed").collect();
    // The latest is the first.
    let [none, same, of_ada, of_depot] = ends[..] else { panic!("{ends:#?}") };

    let filter = |owner: Option<&str>, trend: &str| NotificationFilter {
        event: Some("TestSet.Completed".to_owned()),
        owner: owner.map(ToOwned::to_owned),
        trend: Some(trend.to_owned()),
        ..NotificationFilter::default()
    };
    for (owner, trend, expected) in [
        (Some("ADA"), "Worse", vec![of_ada]),
        (Some("Ada"), "Same", vec![same, of_depot]),
        (Some("Ada"), "Better", vec![]),
        (Some("depot team"), "worse", vec![of_depot]),
        (Some("depot team"), "Worse,Better", vec![of_ada, of_depot]),
        (Some("depot"), "Worse,Same,Better", vec![]),
        (None, "Worse", vec![none, same, of_ada, of_depot]),
    ] {
        let listed = world.list_filtered(&user, filter(owner, trend)).await?;
        assert_eq!(listed.iter().collect::<Vec<_>>(), expected, "{owner:?} {trend}");
    }
    let sent = [vec![of_ada], vec![of_depot], vec![of_depot], vec![none, same, of_ada, of_depot]];
    for ((owners, receiver, webhook), expected) in receivers.iter().zip(sent) {
        receiver.receives(expected.len()).await;
        let stored = sqlx::query_scalar::<_, String>(
            "select notification_id::text from webhook_delivery where webhook_id = $1::uuid
             order by notification_id desc",
        );
        let stored = stored.bind(webhook).fetch_all(&world.db).await?;
        let expected: Vec<_> = expected.iter().map(|one| one.id.clone()).collect();
        assert_eq!(stored, expected, "{owners:?}");
    }
    Ok(())
}

#[tokio::test]
async fn large_notifications_are_all_delivered_in_several_rounds() -> Result<()> {
    const COUNT: usize = 20;
    let world = World::new().await?;
    let user = world.manager().await;
    let execution = world.service("execution").await?;
    let receiver = Receiver::start(Behaviour::Answer(204)).await?;
    let events = vec!["TestSet.Completed".to_owned()];
    let webhook = WebhookInput { events, ..webhook_to(&receiver.url) };
    world.add_webhook(&user, webhook).await?;
    // Each event has more than 100 KB, and a round reads at most 1 MiB at once.
    let owners: Vec<_> = (0..100).map(|number| format!("{number} {}", "ä".repeat(250))).collect();
    let owners: Vec<_> = owners.iter().map(|owner| (owner.as_str(), Trend::Worse)).collect();
    for _ in 0..COUNT {
        execution.publish(&worse(&user, &owners)?).await?;
    }
    let all = world.wait_for(&user, 1 + 2 * COUNT).await;
    let requests = receiver.receives(COUNT).await;
    let delivered: BTreeSet<_> = requests.iter().map(|one| one.header("webhook-id")).collect();
    let ends = all.iter().filter(|one| one.action == "Completed");
    let ends: BTreeSet<_> = ends.map(|one| one.id.as_str()).collect();
    assert_eq!(delivered, ends);
    Ok(())
}
