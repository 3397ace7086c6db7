//! Updates with absent, null, wrongly typed, unknown and read-only fields.

use serde_json::{Value, json};

use super::records::records;
use crate::customer::Customer;

const STRANGE: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

#[tokio::test(flavor = "multi_thread")]
async fn unknown_and_read_only_fields_change_nothing_and_misspelt_ones_are_refused() {
    let api = &Customer::new().await.api;
    for record in records(api).await {
        let before = api.get(&record.path).await.ok();
        let read_only = json!({
            "Id": STRANGE, "ProjectId": STRANGE, "CustomerId": STRANGE, "TestCaseId": STRANGE,
            "LastResult": "Passed", "OverallResult": "Passed", "PassRate": 99.0, "Revision": 77,
            "LastRunDuration": "99:99:99", "ExecutionStatistics": [{"Result": "Passed"}],
            "TestReports": [], "Features": null,
        });
        let shown = |(name, _): &(&String, &Value)| before.get(name.as_str()).is_some();
        let ignored = read_only.as_object().unwrap().iter().filter(shown);
        let ignored: Value = ignored.map(|(name, value)| (name.clone(), value.clone())).collect();
        let after = api.put(&record.path, ignored).await.ok();
        assert_eq!(without_version(after), without_version(before.clone()), "{}", record.noun);
        let misspelt = json!({record.text.to_lowercase(): "other case"});
        api.put(&record.path, misspelt).await.is_problem(422, "invalid");
        let after = api.put(&record.path, json!({"Nonsense": {"a": [1]}})).await.ok();
        assert_eq!(without_version(after), without_version(before), "{}", record.noun);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_can_be_sent_back_unchanged() {
    let api = &Customer::new().await.api;
    for record in records(api).await {
        let before = api.get(&record.path).await.ok();
        let after = api.put(&record.path, before.clone()).await.ok();
        assert_eq!(without_version(after), without_version(before), "{}", record.noun);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn null_clears_only_nullable_fields() {
    let api = &Customer::new().await.api;
    for record in records(api).await {
        let (required, _) = record.required;
        let before = api.get(&record.path).await.ok();
        let problem = api.put(&record.path, json!({required: null, record.text: "new"})).await;
        let problem = problem.is_problem(422, "invalid");
        assert_eq!(problem["errors"][0]["pointer"], format!("/{required}"), "{}", record.noun);
        assert_eq!(api.get(&record.path).await.ok(), before, "{}", record.noun);

        let Some((nullable, value)) = &record.nullable else { continue };
        let set = api.put(&record.path, json!({*nullable: value})).await.ok();
        assert_eq!(&set[*nullable], value, "{}", record.noun);
        let kept = api.put(&record.path, json!({record.text: "new"})).await.ok();
        assert_eq!(&kept[*nullable], value, "{}", record.noun);
        let cleared = api.put(&record.path, json!({*nullable: null})).await.ok();
        assert_eq!(cleared[*nullable], Value::Null, "{}", record.noun);
        assert_eq!(cleared[record.text], "new", "{}", record.noun);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_of_the_wrong_type_are_rejected_and_named() {
    let api = &Customer::new().await.api;
    for record in records(api).await {
        let (required, wrong) = record.required.clone();
        let before = api.get(&record.path).await.ok();
        for (body, pointer) in [
            (json!({required: wrong, record.text: "new"}), format!("/{required}")),
            (json!({"DataVersion": 7, record.text: "new"}), "/DataVersion".to_owned()),
            (json!({record.text: "a\0b"}), format!("/{}", record.text)),
            (json!({record.text: "x".repeat((64 << 10) + 1)}), format!("/{}", record.text)),
        ] {
            let problem = api.put(&record.path, body).await.is_problem(422, "invalid");
            assert_eq!(problem["errors"][0]["pointer"], pointer, "{}", record.noun);
        }
        api.put(&record.path, json!([])).await.is_problem(422, "invalid");
        assert_eq!(api.get(&record.path).await.ok(), before, "{}", record.noun);

        // Creating a record rejects the same body.
        let mut body = record.body.clone();
        body[required] = record.required.1.clone();
        let problem = api.post(&record.list, body).await.is_problem(422, "invalid");
        assert_eq!(problem["errors"][0]["pointer"], format!("/{required}"), "{}", record.noun);
    }
}

fn without_version(mut record: Value) -> Value {
    record.as_object_mut().expect("an object").remove("DataVersion");
    record
}
