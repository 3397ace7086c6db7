//! A team changes its gate after it has seen what the new rules would have decided.

use serde_json::{Value, json};

use crate::{
    customer::Customer,
    junit::upload,
    world::{create_project, id},
};

fn report(failures: usize) -> String {
    let failure = |nr: usize| if nr < failures { "<failure message='lost'/>" } else { "" };
    let test = |nr| format!("<testcase classname='shop' name='t{nr}'>{}</testcase>", failure(nr));
    format!("<testsuite>{}</testsuite>", (0..4).map(test).collect::<String>())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gate_is_tried_over_the_past_before_it_is_switched_on() {
    let api = Customer::new().await.api;
    let project = create_project(&api).await;
    let sets = format!("{project}/testsets");
    let set = api.post(&sets, json!({"Name": "Nightly"})).await.created();
    let set = format!("{sets}/{}", id(&set));
    let backtests = format!("{set}/backtests");
    upload(&api, &set, report(0)).await.created();
    let red = upload(&api, &set, report(1)).await.created();
    upload(&api, &set, report(3)).await.created();

    let present = api.post(&backtests, json!({})).await.ok();
    let expected = json!({
        "Executions": 3, "Passed": 1, "Failed": 2, "Blocked": 0, "LetThrough": 0,
        "Differences": [], "NextCursor": null,
    });
    assert_eq!(present, expected);

    let generous = json!({"MaxNewFailures": 1});
    let tried = api.post(&backtests, json!({"Gate": generous})).await.ok();
    assert_eq!((&tried["Passed"], &tried["LetThrough"]), (&json!(2), &json!(1)), "{tried}");
    let through = &tried["Differences"][0];
    assert_eq!(through["ExecutionId"], id(&red));
    assert_eq!((&through["Verdict"], &through["Replayed"]), (&json!("Failed"), &json!("Passed")));
    let rule = &through["Rules"][0];
    assert_eq!(rule["Message"], "1 new failure, at most 0 allowed", "{tried}");
    let verdict = format!("{project}/executions/{}/verdict", id(&red));
    assert_eq!(api.get(&verdict).await.ok()["State"], "Failed", "nothing is stored");

    api.put(&set, json!({"Gate": generous})).await.ok();
    let again = api.post(&backtests, json!({})).await.ok();
    assert_eq!(again["LetThrough"], 1, "the executions had the gate of their time");
    let period = json!({"From": red["RequestTime"], "To": "2999-01-01T00:00:00Z"});
    assert_eq!(api.post(&backtests, period).await.ok()["Executions"], 2);

    for (wrong, pointer) in [
        (json!({"Gate": {"FlakyAfterBreaks": 1}}), "/Gate/FlakyAfterBreaks"),
        (json!({"Gate": {"RequiredTestCases": ["a", ""]}}), "/Gate/RequiredTestCases/1"),
        (json!({"Gate": 7}), "/Gate"),
        (json!({"From": "yesterday"}), "/From"),
        (json!({"To": "2001-01-01T00:00:00Z"}), "/To"),
        (json!({"Cursor": "last"}), "/Cursor"),
    ] {
        let problem: Value = api.post(&backtests, wrong).await.is_problem(422, "invalid");
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
    }
    let missing = format!("{project}/testsets/{}/backtests", id(&red));
    api.post(&missing, json!({})).await.is_problem(404, "not_found");
}
