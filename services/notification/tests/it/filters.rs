//! Filters by event, project, branch and result, the same for lists, streams and webhooks.

use anyhow::{Context, Result};
use assay_events::{Event, EventType, ReportsAction};
use assay_proto::{
    Actor, ActorKind, ExecutionId, ProjectId, ReportStatus, ResultChange, TestCaseId, TestPlanId,
    TestReportId, TestResult, TestSetId,
    events::{ReportState, ReportsChanged},
    notification::{
        Notification, NotificationFilter, NotificationInput, WatchNotificationsRequest,
        WebhookInput,
    },
};
use assay_testkit::TestUser;
use serde_json::{Value, json};
use tokio::time::{Duration, timeout};
use tonic::Code;

use crate::{
    receiver::{Behaviour, Receiver},
    webhook::webhook_to,
    world::{World, notification, numbered},
};

/// Returns the event that a report with this result has finished.
fn finished(
    user: &TestUser,
    project: ProjectId,
    branch: &str,
    result: TestResult,
) -> Result<Event> {
    let report = ReportState {
        id: TestReportId::new().to_string(),
        test_case_id: TestCaseId::new().to_string(),
        test_plan_id: TestPlanId::new().to_string(),
        test_case_identifier: Some("checkout.pay".to_owned()),
        result: result.into(),
        status: ReportStatus::InReview.into(),
        change: ResultChange::New.into(),
        revision: 4,
        owners: vec![format!("Team {branch}")],
        ..ReportState::default()
    };
    let change = ReportsChanged {
        execution_id: ExecutionId::new().to_string(),
        project_id: project.to_string(),
        test_set_id: TestSetId::new().to_string(),
        action: "Finished".to_owned(),
        reports: vec![report],
        branch: Some(branch.to_owned()),
        actor: Some(Actor {
            kind: ActorKind::Token.into(),
            name: "Ada".to_owned(),
            ..Actor::default()
        }),
        ..ReportsChanged::default()
    };
    let finished = EventType::Reports(ReportsAction::Finished);
    Ok(Event::new(user.customer, &change.execution_id, finished, &change)?)
}

fn filter(read: impl FnOnce(&mut NotificationFilter)) -> NotificationFilter {
    let mut filter = NotificationFilter::default();
    read(&mut filter);
    filter
}

/// Selects a notification in another way than the service does.
fn expects(filter: &NotificationFilter, notification: &Notification) -> bool {
    let any_of = |list: &Option<String>, value: &str| {
        list.as_ref()
            .is_none_or(|list| list.split(',').any(|one| one.trim().eq_ignore_ascii_case(value)))
    };
    let of_branch = |pattern: &str, branch: &str| match pattern.strip_suffix('*') {
        Some(beginning) => branch.starts_with(beginning),
        None => branch == pattern,
    };
    let Notification { source, action, branch, project_id, owners, .. } = notification;
    let is_client = notification.origin() == assay_proto::NotificationOrigin::Client;
    let prefix = if is_client { "Client." } else { "" };
    let result = notification.result.map(|_| format!("{:?}", notification.result()));
    let named =
        [format!("{prefix}{source}.{action}"), format!("{prefix}{source}.*"), "*".to_owned()];
    (filter.event.is_none() || named.iter().any(|name| any_of(&filter.event, name)))
        && any_of(&filter.source, source)
        && (filter.project_id.is_none() || filter.project_id == *project_id)
        && filter
            .branch
            .as_ref()
            .is_none_or(|pattern| branch.as_ref().is_some_and(|branch| of_branch(pattern, branch)))
        && filter
            .owner
            .as_ref()
            .is_none_or(|owner| owners.iter().any(|one| one.eq_ignore_ascii_case(owner)))
        && (filter.result.is_none() || any_of(&filter.result, result.as_deref().unwrap_or("-")))
}

#[tokio::test]
async fn the_same_filter_selects_the_same_in_lists_streams_and_webhooks() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    let execution = world.service("execution").await?;
    let projects = [ProjectId::new(), ProjectId::new()];
    let mut filters = vec![
        filter(|filter| filter.event = Some("testcase.finished".to_owned())),
        filter(|filter| filter.event = Some("Client.TestCase.*".to_owned())),
        filter(|filter| {
            filter.event = Some("client.testcase.created, TestCase.Finished".to_owned());
        }),
        filter(|filter| filter.project_id = Some(projects[0].to_string())),
        filter(|filter| filter.branch = Some("main".to_owned())),
        filter(|filter| filter.branch = Some("top*".to_owned())),
        filter(|filter| filter.owner = Some("team MAIN".to_owned())),
        filter(|filter| filter.result = Some("failed, ERROR".to_owned())),
    ];
    filters.push(filter(|filter| {
        filter.event = Some("TestCase.*".to_owned());
        filter.project_id = Some(projects[1].to_string());
        filter.branch = Some("main".to_owned());
        filter.result = Some("Passed".to_owned());
    }));
    let mut receivers = Vec::new();
    for filter in &filters {
        let receiver = Receiver::start(Behaviour::Answer(204)).await?;
        let split = |list: &Option<String>| -> Vec<String> {
            let list = list.iter().flat_map(|list| list.split(','));
            list.map(|one| one.trim().to_owned()).collect()
        };
        let results =
            split(&filter.result).into_iter().map(|result| match result.to_lowercase().as_str() {
                "failed" => TestResult::Failed.into(),
                "error" => TestResult::Error.into(),
                _ => TestResult::Passed.into(),
            });
        let webhook = WebhookInput {
            events: if filter.event.is_some() {
                split(&filter.event)
            } else {
                vec!["TestCase.*".to_owned()]
            },
            project_ids: filter.project_id.iter().cloned().collect(),
            branches: filter.branch.iter().cloned().collect(),
            owners: filter.owner.iter().cloned().collect(),
            results: results.collect(),
            ..webhook_to(&receiver.url)
        };
        world.add_webhook(&user, webhook).await?;
        receivers.push(receiver);
    }

    let watch = |filter: &NotificationFilter| WatchNotificationsRequest {
        after: Some(0),
        filter: Some(filter.clone()),
        ..WatchNotificationsRequest::default()
    };
    for project in projects {
        for branch in ["main", "topic"] {
            for result in [TestResult::Passed, TestResult::Failed, TestResult::Error] {
                execution.publish(&finished(&user, project, branch, result)?).await?;
            }
        }
    }
    world.create(&user, notification()).await?;
    let all = world.wait_for(&user, 12 + 1 + filters.len()).await;

    for (filter, receiver) in filters.iter().zip(&receivers) {
        let expected: Vec<_> = all.iter().filter(|one| expects(filter, one)).collect();
        assert!(!expected.is_empty() && expected.len() < all.len(), "{filter:?}");
        let listed = world.list_filtered(&user, filter.clone()).await?;
        assert_eq!(listed.iter().collect::<Vec<_>>(), expected, "{filter:?}");
        let mut stream = world.client.clone().watch_notifications(user.call(watch(filter))).await?;
        let mut streamed = Vec::new();
        for _ in &expected {
            let message = timeout(Duration::from_secs(20), stream.get_mut().message()).await??;
            let event: Value = serde_json::from_str(&message.context("an event")?.event)?;
            streamed.push(event["id"].as_str().context("an id")?.to_owned());
        }
        streamed.reverse();
        let ids: Vec<_> = expected.iter().map(|one| one.id.clone()).collect();
        assert_eq!(streamed, ids, "{filter:?}");
        let mut delivered: Vec<_> = receiver.receives(ids.len()).await;
        delivered.sort_by(|one, other| other.header("webhook-id").cmp(one.header("webhook-id")));
        let delivered: Vec<_> = delivered.iter().map(|one| one.header("webhook-id")).collect();
        assert_eq!(delivered, ids, "{filter:?}");
    }
    Ok(())
}

#[tokio::test]
async fn only_letters_from_a_to_z_are_the_same_in_upper_and_lower_case() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    // Rust, PostgreSQL and languages disagree about the other letters.
    for (number, source) in ["İstanbul", "Straße", "ΣΟΦΟΣ", "Ärger"].into_iter().enumerate()
    {
        let receiver = Receiver::start(Behaviour::Answer(204)).await?;
        let of_source = format!("client.{}.*", source.to_ascii_uppercase());
        let webhook = WebhookInput { events: vec![of_source.clone()], ..webhook_to(&receiver.url) };
        world.add_webhook(&user, webhook).await?;
        let input = NotificationInput { source: source.to_owned(), ..numbered(number) };
        let created = world.create(&user, input).await?;
        let selected = [
            filter(|filter| filter.event = Some(of_source.clone())),
            filter(|filter| filter.event = Some(format!("CLIENT.{source}.done{number}"))),
            filter(|filter| filter.source = Some(source.to_ascii_lowercase())),
        ];
        for filter in selected {
            let listed = world.list_filtered(&user, filter.clone()).await?;
            assert_eq!(listed, std::slice::from_ref(&created), "{filter:?}");
        }
        let delivered = receiver.receives(1).await;
        assert_eq!(delivered[0].header("webhook-id"), created.id, "{source}");
    }
    for other in ["i̇stanbul", "istanbul", "strasse", "σοφος", "ärger"] {
        for filter in [
            filter(|filter| filter.event = Some(format!("client.{other}.*"))),
            filter(|filter| filter.source = Some(other.to_owned())),
        ] {
            assert_eq!(world.list_filtered(&user, filter).await?, [], "{other}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn the_event_of_a_report_leads_to_its_record() -> Result<()> {
    let world = World::new().await?;
    let user = world.user().await;
    let execution = world.service("execution").await?;
    let project = ProjectId::new();
    execution.publish(&finished(&user, project, "main", TestResult::Failed)?).await?;
    let notification = world.wait_for(&user, 1).await.remove(0);
    let [message] = &world.published().await?[..] else { panic!("one message") };
    let event: Value = serde_json::from_slice(&message.payload)?;
    assert_eq!(event["data"], serde_json::to_value(&notification)?);
    let data = &event["data"];
    let (case, plan, report) = (&data["SourceId"], &data["TestPlanId"], &data["TargetId"]);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let path = format!(
        "/api/projects/{project}/testcases/{}/testplans/{}/testreports/{}",
        text(case),
        text(plan),
        text(report)
    );
    assert_eq!(data["Path"], path);
    assert_eq!(data["Url"], format!("https://assay.test/reports/{}", text(report)));
    for (field, expected) in [
        ("Result", "Failed"),
        ("Change", "New"),
        ("Branch", "main"),
        ("RecordVersion", "4"),
        ("TestCaseIdentifier", "checkout.pay"),
    ] {
        assert_eq!(data[field], expected, "{field}");
    }
    assert_eq!(data["Owners"], json!(["Team main"]));
    assert_eq!(data["Actor"]["Kind"], "Token");
    Ok(())
}

#[tokio::test]
async fn misspelt_words_are_refused_everywhere_with_the_nearest_one() -> Result<()> {
    let world = World::new().await?;
    let user = world.manager().await;
    for (filter, nearest) in [
        (filter(|filter| filter.source = Some("TestSte".to_owned())), "TestSet"),
        (filter(|filter| filter.action = Some("Complete".to_owned())), "Completed"),
        (filter(|filter| filter.event = Some("TestSet.Complete".to_owned())), "Completed"),
        (filter(|filter| filter.event = Some("Nope.Nope".to_owned())), "Client.Nope.Nope"),
        (filter(|filter| filter.result = Some("Fail".to_owned())), "Failed"),
    ] {
        let listed = world.list_filtered(&user, filter.clone()).await.unwrap_err();
        let watch = WatchNotificationsRequest {
            filter: Some(filter.clone()),
            ..WatchNotificationsRequest::default()
        };
        let watched = world.client.clone().watch_notifications(user.call(watch)).await.unwrap_err();
        for refused in [listed, watched] {
            assert_eq!(refused.code(), Code::InvalidArgument);
            assert!(refused.message().contains(nearest), "{}", refused.message());
        }
        if let Some(event) = filter.event {
            let webhook = WebhookInput { events: vec![event], ..webhook_to("https://ci.example") };
            let refused = world.add_webhook(&user, webhook).await.unwrap_err();
            assert!(refused.message().contains(nearest), "{}", refused.message());
        }
    }
    Ok(())
}
