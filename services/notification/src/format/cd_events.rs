//! CDEvents 0.4.1, as CloudEvents: <https://cdevents.dev/docs/continuous-integration/>.

use assay_proto::{CustomerId, Timestamp};
use serde_json::{Map, Value, json};

use super::facts::Facts;

const VERSION: &str = "0.4.1";

/// Returns the end of an execution as `testsuiterun.finished`, and that of a test case as
/// `testcaserun.finished`; nothing else. `id` is the id of the notification.
pub(super) fn event(
    customer: CustomerId,
    id: &str,
    time: Timestamp,
    facts: &Facts,
    data: &Value,
) -> Option<Value> {
    let (kind, noun, run, content) = if facts.is_end() {
        let mut suite = Map::new();
        suite.insert("id".to_owned(), first([&facts.test_set_id], &facts.source_id).into());
        insert(&mut suite, "name", facts.test_set_name.as_deref());
        let run = first([&facts.execution_id, &facts.target_id], &facts.source_id);
        ("testsuiterun", "testSuiteRun", run, json!({"testSuite": suite}))
    } else if facts.is_report() {
        let mut case = Map::new();
        case.insert("id".to_owned(), first([&facts.test_case_id], &facts.source_id).into());
        insert(&mut case, "name", facts.test_case_identifier.as_deref());
        let mut content = json!({"testCase": case});
        if let Some(execution) = &facts.execution_id {
            content["testSuiteRun"] = json!({"id": execution});
        }
        let run = first([&facts.target_id], &facts.source_id);
        ("testcaserun", "testCaseRun", run, content)
    } else {
        return None;
    };
    let mut content = content;
    content["outcome"] = outcome(facts).into();
    // It is required, also of an execution without an environment.
    let environment = facts.statistic.as_ref().map(|statistic| statistic.environment_id.as_str());
    let environment = environment.filter(|environment| !environment.is_empty());
    content["environment"] = json!({"id": environment.unwrap_or("none")});
    let kind = format!("dev.cdevents.{kind}.finished.0.2.0");
    let source = format!("/assay/customers/{customer}");
    let head = json!({
        "version": VERSION, "id": id, "source": source, "type": kind, "timestamp": time,
    });
    let subject = json!({"id": run, "source": source, "type": noun, "content": content});
    Some(json!({
        "specversion": "1.0",
        "id": id,
        "source": source,
        "type": kind,
        "subject": run,
        "time": time,
        "datacontenttype": "application/json",
        "data": {
            "context": head,
            "subject": subject,
            "customData": data,
            "customDataContentType": "application/json",
        },
    }))
}

fn first<const N: usize>(ids: [&Option<String>; N], otherwise: &str) -> String {
    let found = ids.into_iter().flatten().next();
    found.map_or_else(|| otherwise.to_owned(), Clone::clone)
}

fn insert(object: &mut Map<String, Value>, member: &str, text: Option<&str>) {
    if let Some(text) = text {
        object.insert(member.to_owned(), text.into());
    }
}

fn outcome(facts: &Facts) -> &'static str {
    match (facts.action.as_str(), facts.result.as_deref()) {
        ("Canceled", _) | (_, Some("Canceled")) => "cancel",
        (_, Some("Passed")) => "pass",
        (_, Some("Failed")) => "fail",
        _ => "error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event_of(fields: Value) -> Option<Value> {
        let customer = CustomerId::from_path("019cade2-11c0-7594-983c-a6917545a63c").unwrap();
        let facts = serde_json::from_value(fields).unwrap();
        event(customer, "n1", Timestamp::default(), &facts, &json!({"Id": "n1"}))
    }

    /// The expected event is valid by the schema `test-suite-run-finished-event` of CDEvents 0.4.1.
    #[test]
    fn the_end_of_an_execution_is_a_finished_run_of_a_test_suite() {
        let event = event_of(json!({
            "Source": "TestSet", "SourceId": "s1", "Target": "Execution", "TargetId": "e1",
            "Action": "Completed", "Result": "Failed", "TestSetName": "Checkout",
            "Statistic": {"EnvironmentId": "v1"},
        }));
        let source = "/assay/customers/019cade2-11c0-7594-983c-a6917545a63c";
        let time = "1970-01-01T00:00:00.000000Z";
        let kind = "dev.cdevents.testsuiterun.finished.0.2.0";
        let expected = json!({
            "specversion": "1.0", "id": "n1", "source": source, "type": kind, "subject": "e1",
            "time": time, "datacontenttype": "application/json",
            "data": {
                "context": {
                    "version": "0.4.1", "id": "n1", "source": source, "type": kind, "timestamp": time,
                },
                "subject": {
                    "id": "e1", "source": source, "type": "testSuiteRun",
                    "content": {
                        "outcome": "fail", "environment": {"id": "v1"},
                        "testSuite": {"id": "s1", "name": "Checkout"},
                    },
                },
                "customData": {"Id": "n1"},
                "customDataContentType": "application/json",
            },
        });
        assert_eq!(event, Some(expected));
    }

    /// The expected content is valid by the schema `test-case-run-finished-event` of CDEvents 0.4.1.
    #[test]
    fn the_end_of_a_test_case_is_a_finished_run_of_it() {
        let event = event_of(json!({
            "Source": "TestCase", "SourceId": "c1", "Target": "TestReport", "TargetId": "r1",
            "Action": "Finished", "Result": "Aborted", "ExecutionId": "e1", "TestCaseIdentifier": "pay.card",
        }));
        let data = &event.unwrap()["data"];
        assert_eq!(data["context"]["type"], "dev.cdevents.testcaserun.finished.0.2.0");
        let subject = &data["subject"];
        assert_eq!((&subject["type"], &subject["id"]), (&json!("testCaseRun"), &json!("r1")));
        let content = json!({
            "outcome": "error", "environment": {"id": "none"}, "testSuiteRun": {"id": "e1"},
            "testCase": {"id": "c1", "name": "pay.card"},
        });
        assert_eq!(subject["content"], content);
    }

    #[test]
    fn there_is_nothing_else() {
        for (target, action) in
            [("Project", "Created"), ("Execution", "Requested"), ("TestReport", "Reviewed")]
        {
            assert_eq!(event_of(json!({"Target": target, "Action": action})), None);
        }
        let of_client = json!({"Target": "Execution", "Action": "Completed", "Origin": "Client"});
        assert_eq!(event_of(of_client), None);
    }
}
