//! Examples of notifications in the AsyncAPI document.

use assay_proto::{
    Actor, ActorKind, ExecutionStatistic, NotificationOrigin, ResultChange, TestResult, Trend,
    events::{FailedTestCase, OwnerTrend},
    execution::{ChangeCounts, RuleOutcome, VerdictState},
    notification::Notification,
};
use serde_json::{Value, json};

const CUSTOMER: &str = "019aa8bf-1f0e-7d8a-8b39-58d4f6e1a3c2";
const PROJECT: &str = "019aa8bf-5a41-7c08-9e1b-2f0c7d4e6a11";
const SET: &str = "019aa8c0-0c52-7be4-8f3d-9a1e6b5c4d22";
const EXECUTION: &str = "019aa8c1-3d63-7aa9-a7c5-1b2d3e4f5a33";
const CASE: &str = "019aa8c0-7e74-7f10-8d6e-4c5b6a7f8e44";
const PLAN: &str = "019aa8c0-7e75-7a21-9b8c-6d5e4f3a2b55";
const REPORT: &str = "019aa8c1-3d63-7aaa-b6d4-7c8d9e0f1a66";
const USER: &str = "019aa8be-9b85-7e32-8a7b-0f1e2d3c4b77";
const TOKEN: &str = "019aa8be-c296-7d43-9c6a-5e4d3c2b1a88";

/// Returns the examples of what Assay creates.
pub(super) fn of_assay() -> Value {
    json!([
        example("completed", "The end of an execution", &completed("TestSet", "Completed")),
        example("judged", "The verdict of an execution", &completed("Execution", "Judged")),
        example("finished", "The result of a test case", &finished()),
        example("failing", "The first failure of a running execution", &failing()),
        example("created", "A new project", &created()),
    ])
}

/// Returns the example of what a client creates.
pub(super) fn of_client() -> Value {
    let deployed = Notification {
        id: "019aa8c2-8f19-7b65-8c48-3a2b1c0d9eb1".to_owned(),
        source: "Build".to_owned(),
        source_id: "1205".to_owned(),
        target: "Cluster".to_owned(),
        target_id: Some("eu-1".to_owned()),
        action: "Deployed".to_owned(),
        ..notification(NotificationOrigin::Client)
    };
    json!([example("deployed", "A deployment, as a client reports it", &deployed)])
}

fn notification(origin: NotificationOrigin) -> Notification {
    Notification {
        state: "None".to_owned(),
        data_version: "1".to_owned(),
        origin: origin.into(),
        actor: Some(Actor {
            kind: ActorKind::Token.into(),
            user_id: Some(USER.to_owned()),
            name: "Ada Lovelace".to_owned(),
            token_id: Some(TOKEN.to_owned()),
        }),
        ..Notification::default()
    }
}

fn of_execution() -> Notification {
    Notification {
        project_id: Some(PROJECT.to_owned()),
        test_set_id: Some(SET.to_owned()),
        test_set_name: Some("Nightly regression".to_owned()),
        execution_id: Some(EXECUTION.to_owned()),
        result: Some(TestResult::Failed.into()),
        branch: Some("main".to_owned()),
        commit: Some("3f2c1d0".to_owned()),
        build: Some("1205".to_owned()),
        ci_url: Some("https://ci.example.com/runs/1205".to_owned()),
        url: Some(format!("https://assay.example.com/executions/{EXECUTION}")),
        path: Some(format!("/api/projects/{PROJECT}/executions/{EXECUTION}")),
        ..notification(NotificationOrigin::Assay)
    }
}

fn failed() -> FailedTestCase {
    FailedTestCase {
        id: CASE.to_owned(),
        identifier: "checkout.pay_by_card".to_owned(),
        name: "Pay by card".to_owned(),
        result: TestResult::Failed.into(),
        owners: vec!["Checkout team".to_owned()],
    }
}

fn statistic(pending: i32) -> ExecutionStatistic {
    ExecutionStatistic {
        execution_id: EXECUTION.to_owned(),
        execution_request_time: serde_json::from_value(json!("2026-11-20T23:31:12.000000Z"))
            .expect("a time"),
        test_cases_total: 120,
        test_cases_pending: pending,
        test_cases_passed: 119 - pending,
        test_cases_failed: 1,
        ..ExecutionStatistic::default()
    }
}

fn completed(source: &str, action: &str) -> Notification {
    let (target, state) = match source {
        "TestSet" => ("Execution", "Completed"),
        _ => ("TestSet", "Failed"),
    };
    let [source_id, target_id] = match source {
        "TestSet" => [SET, EXECUTION],
        _ => [EXECUTION, SET],
    };
    let id = match source {
        "TestSet" => "019aa8c2-5d0e-7c31-9a54-0d6a3c1f7b21",
        _ => "019aa8c2-5d0e-7c32-8b65-1e7b4d2a8c32",
    };
    let outcome = |rule: &str, is_met, message: &str| RuleOutcome {
        rule: rule.to_owned(),
        is_met,
        message: message.to_owned(),
    };
    Notification {
        id: id.to_owned(),
        source: source.to_owned(),
        source_id: source_id.to_owned(),
        target: target.to_owned(),
        target_id: Some(target_id.to_owned()),
        action: action.to_owned(),
        state: state.to_owned(),
        statistic: Some(statistic(0)),
        changes: Some(ChangeCounts { new: 1, fixed: 2, unreviewed: 1, ..ChangeCounts::default() }),
        verdict: Some(VerdictState::Failed.into()),
        trend: Some(Trend::Worse.into()),
        rules: vec![
            outcome("Complete", true, "120 test cases executed"),
            outcome("NewFailures", false, "1 new failure, at most 0 allowed"),
        ],
        failed_test_cases: vec![failed()],
        owners: vec!["Checkout team".to_owned()],
        owner_trends: vec![OwnerTrend {
            owner: "Checkout team".to_owned(),
            trend: Trend::Worse.into(),
        }],
        duration_in_sec: Some(168.4),
        record_version: Some("42".to_owned()),
        ..of_execution()
    }
}

fn finished() -> Notification {
    let path =
        format!("/api/projects/{PROJECT}/testcases/{CASE}/testplans/{PLAN}/testreports/{REPORT}");
    Notification {
        id: "019aa8c2-4b0c-7a87-8e1d-5f4e3d2c1b99".to_owned(),
        source: "TestCase".to_owned(),
        source_id: CASE.to_owned(),
        target: "TestReport".to_owned(),
        target_id: Some(REPORT.to_owned()),
        action: "Finished".to_owned(),
        state: "InReview".to_owned(),
        test_case_id: Some(CASE.to_owned()),
        test_case_identifier: Some("checkout.pay_by_card".to_owned()),
        test_plan_id: Some(PLAN.to_owned()),
        change: Some(ResultChange::New.into()),
        duration_in_sec: Some(8.3),
        owners: vec!["Checkout team".to_owned()],
        url: Some(format!("https://assay.example.com/reports/{REPORT}")),
        path: Some(path),
        record_version: Some("3".to_owned()),
        ..of_execution()
    }
}

fn failing() -> Notification {
    Notification {
        id: "019aa8c2-2a0b-7c98-9f2e-6a5b4c3d2eaa".to_owned(),
        source: "Execution".to_owned(),
        source_id: EXECUTION.to_owned(),
        target: "TestSet".to_owned(),
        target_id: Some(SET.to_owned()),
        action: "Failing".to_owned(),
        state: "Running".to_owned(),
        statistic: Some(statistic(80)),
        failed_test_cases: vec![failed()],
        owners: vec!["Checkout team".to_owned()],
        duration_in_sec: Some(51.0),
        record_version: Some("17".to_owned()),
        ..of_execution()
    }
}

fn created() -> Notification {
    Notification {
        id: "019aa8bf-5a42-7d19-8f2c-3a1d8e5f7b22".to_owned(),
        source: "Project".to_owned(),
        source_id: PROJECT.to_owned(),
        target: "Customer".to_owned(),
        target_id: Some(CUSTOMER.to_owned()),
        action: "Created".to_owned(),
        project_id: Some(PROJECT.to_owned()),
        url: Some(format!("https://assay.example.com/projects/{PROJECT}")),
        path: Some(format!("/api/projects/{PROJECT}")),
        record_version: Some("1".to_owned()),
        ..notification(NotificationOrigin::Assay)
    }
}

/// Returns a message with a notification in its event.
fn example(name: &str, summary: &str, notification: &Notification) -> Value {
    let (source, action) = (notification.source.to_lowercase(), notification.action.to_lowercase());
    let (of, publisher) = match notification.origin() {
        NotificationOrigin::Client => (format!("/assay/clients/{USER}"), "client"),
        _ => ("/assay/notifications".to_owned(), "notifications"),
    };
    json!({
        "name": name,
        "summary": summary,
        "headers": {
            "Content-Type": "application/cloudevents+json",
            "Nats-Msg-Id": notification.id,
        },
        "payload": {
            "specversion": "1.0",
            "id": notification.id,
            "source": of,
            "type": format!("io.assay.{publisher}.{source}.{action}.v1"),
            "subject": notification.id,
            "time": "2026-11-20T23:34:00.123456Z",
            "datacontenttype": "application/json",
            "tenantid": CUSTOMER,
            "data": notification,
        },
    })
}
