//! The weeks of a team: tests that are stable, flaky, broken and repaired, on two branches,
//! with shards and retries; a monitor, an outage, and a stricter gate that is tried over the past.

use assay_testkit::eventually;
use serde_json::{Value, json};

use super::{Reader, numbers::numbers};
use crate::{browser::Browser, customer::Customer, world::id};

/// Tests that pass in every run but the outage.
const STABLE: usize = 9;

/// Returns the results of a test: `P` passed, `F` failed, `R` passed on a retry.
fn results(name: &str, letter: char) -> Vec<Value> {
    let failed = json!([{
        "StepNr": 1, "Result": "Failed", "ActualResult": format!("Error: no answer for {name}"),
    }]);
    let result = |result: &str, attempt: i32| {
        let steps = if result == "Failed" { failed.clone() } else { json!([]) };
        json!({"Identifier": name, "Result": result, "Attempt": attempt, "Steps": steps})
    };
    match letter {
        'P' => vec![result("Passed", 1)],
        'F' => vec![result("Failed", 1)],
        _ => vec![result("Failed", 1), result("Passed", 2)],
    }
}

/// The letters of the tests `flaky`, `broken` and `retried` in runs. The others are stable.
type Run = [char; 3];

impl Reader {
    /// Runs the tests on a branch in two shards. Returns the execution and its path.
    async fn shards(
        &self,
        branch: &str,
        key: &str,
        [flaky, broken, retried]: Run,
    ) -> (Value, String) {
        let named = [("flaky", flaky), ("broken", broken), ("retried", retried)];
        let others = if broken == 'X' { 'F' } else { 'P' };
        let mut tests: Vec<_> = named
            .map(|(name, letter)| results(name, if letter == 'X' { 'F' } else { letter }))
            .to_vec();
        tests.extend((0..STABLE).map(|nr| results(&format!("stable {nr}"), others)));
        let mut last = (Value::Null, String::new());
        for shard in 0..2 {
            let open = json!({
                "Project": "Shop", "TestSet": "Every night", "Branch": branch, "Key": key,
                "Reporter": format!("shard {shard}"), "Reporters": 2, "Commit": key,
            });
            let opened = self.api().post("/api/executions", open).await;
            assert!(opened.status.is_success(), "{opened}");
            let execution: Value = serde_json::from_slice(&opened.body).unwrap();
            let project = execution["ProjectId"].as_str().unwrap();
            let path = format!("/api/projects/{project}/executions/{}", id(&execution));
            let mine: Vec<Value> = tests.iter().skip(shard).step_by(2).flatten().cloned().collect();
            self.api().post(&format!("{path}/results"), json!(mine)).await.ok();
            let complete = format!("{path}/complete?reporter=shard%20{shard}");
            self.api().post(&complete, json!({})).await.expect(200);
            last = (execution, path);
        }
        last
    }

    /// Runs the tests on `main`, a run after the other. Returns the last execution and its path.
    async fn nights(&self, begun: usize, runs: &[Run]) -> (Value, String) {
        let mut last = (Value::Null, String::new());
        for (nr, run) in runs.iter().enumerate() {
            last = self.shards("main", &format!("night-{}", begun + nr), *run).await;
        }
        last
    }

    async fn summary(&self, at: &str) -> Value {
        self.api().get(&format!("{at}/summary")).await.ok()["Changes"].clone()
    }

    async fn verdict(&self, at: &str) -> Value {
        self.api().get(&format!("{at}/verdict")).await.ok()["State"].clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn results_are_judged_by_the_history_of_their_tests() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    let (first, _) = reader.nights(0, &[['P', 'P', 'P']]).await;
    let project = format!("/api/projects/{}", first["ProjectId"].as_str().unwrap());
    let monitor = json!({
        "Name": "Flaky", "Measure": "Recoveries", "Runs": 20, "Threshold": 2, "Action": "Mute",
        "RecoverAfter": 3,
    });
    reader.api().post(&format!("{project}/monitors"), monitor).await.created();
    let states = async |count: usize| {
        eventually("the states of the tests", || async {
            let states = reader.api().get(&format!("{project}/testcasestates")).await.ok();
            (states.as_array().unwrap().len() == count).then_some(())
        })
        .await;
    };

    // A regression is new on its first run; the flaky test is not new once it has a history.
    let (_, red) = reader.nights(1, &[['F', 'P', 'P'], ['P', 'P', 'R'], ['F', 'F', 'P']]).await;
    let changes = reader.summary(&red).await;
    assert_eq!((&changes["New"], reader.verdict(&red).await), (&json!(2), json!("Failed")));
    let (_, red) = reader.nights(4, &[['P', 'F', 'P'], ['F', 'F', 'P']]).await;
    let changes = reader.summary(&red).await;
    assert_eq!([&changes["New"], &changes["Still"], &changes["Flaky"]], [0, 1, 1], "{changes}");
    assert_eq!(reader.verdict(&red).await, "Passed", "nothing is new");
    states(1).await;

    // It is muted, and still listed. Another branch has its own failures.
    let (feature, at) = reader.shards("feature", "feature-1", ['F', 'P', 'P']).await;
    let changes = reader.summary(&at).await;
    assert_eq!([&changes["Muted"], &changes["Fixed"]], [1, 1], "{changes}");
    assert_eq!(reader.verdict(&at).await, "Passed");

    // Both are repaired. The monitor lifts the state.
    let repaired = ['P', 'P', 'P'];
    let (_, green) = reader.nights(6, &[repaired, repaired, repaired]).await;
    states(0).await;
    assert_eq!(reader.verdict(&green).await, "Passed");

    // The database is down: one incident, and nothing is new or flaky because of it.
    let (outage, down) = reader.nights(9, &[['X', 'X', 'X']]).await;
    assert_eq!(reader.verdict(&down).await, "Failed");
    let incident = eventually("the incident", || async {
        let incidents = reader.api().get(&format!("{project}/incidents")).await.ok();
        (incidents.as_array().unwrap().len() == 1).then(|| id(&incidents[0]).to_owned())
    })
    .await;
    let (_, green) = reader.nights(10, &[repaired]).await;
    assert_eq!(reader.verdict(&green).await, "Passed");
    eventually("the end of the incident", || async {
        let incident = reader.api().get(&format!("{project}/incidents/{incident}")).await.ok();
        (!incident["EndedAt"].is_null()).then_some(())
    })
    .await;
    assert_eq!(reader.summary(&green).await["Fixed"], 0, "the outage does not count");

    // A stricter gate is tried before it is switched on.
    let set = first["TestSetId"].as_str().unwrap();
    let strict = json!({"Gate": {"MaxNewFailures": 0, "MaxFlakyTests": 0}});
    let backtests = format!("{project}/testsets/{set}/backtests");
    let tried = reader.api().post(&backtests, strict).await.ok();
    let blocked = tried["Blocked"].as_i64().unwrap();
    assert!(blocked > 0, "{tried}");
    let differences = tried["Differences"].as_array().unwrap();
    assert!(
        differences.iter().all(|one| one["Verdict"] == "Passed" && one["Replayed"] == "Failed")
    );

    // The pages say the same.
    let browser = Browser::open().await;
    let pages = project.trim_start_matches("/api").to_owned();
    let gate = "maxNewFailures=0&maxFlakyTests=0&allowKnownFailures=true&replay=true";
    reader.open(&browser, &format!("{pages}/sets/{set}/gate?{gate}")).await;
    let said = format!("{blocked} blocked that passed");
    browser.read_until("[role=status]", |text| text.contains(&said)).await;
    reader.open(&browser, &format!("{pages}/incidents/{incident}")).await;
    browser.read_until(".badge", |text| text == "Ended").await;
    reader.open(&browser, &format!("/executions/{}", id(&outage))).await;
    browser.read_until(".sentence", |text| text.contains("12 of 12 failed")).await;
    reader.open(&browser, &pages).await;
    browser.read_until(".card", |text| text.contains("12 tests") && text.contains("main")).await;
    browser.client.clone().close().await.unwrap();

    // Each number of each execution leads to as many rows.
    let executions = reader.api().get(&format!("{project}/executions?limit=100")).await.ok();
    let executions = executions.as_array().unwrap();
    assert_eq!(executions.len(), 12);
    assert!(executions.iter().any(|execution| id(execution) == id(&feature)));
    for execution in executions {
        let page = reader.html(&format!("/executions/{}", id(execution))).await;
        let summary = page.split("id=\"summary\"").nth(1).unwrap().split("</header>").next();
        for (list, number) in numbers(summary.unwrap()) {
            assert_eq!(reader.rows(&list).await, number, "{list}");
        }
    }
}
