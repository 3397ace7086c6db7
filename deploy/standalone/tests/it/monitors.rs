//! Monitors over HTTP: a flaky test is muted, repaired and counts again.

use assay_testkit::{Api, eventually};
use serde_json::{Value, json};

use crate::{
    customer::Customer,
    junit::upload,
    world::{create_project, id, in_seconds},
};

/// A test set whose reports have one flaky test, one that breaks, and one that passes.
struct Story {
    api: Api,
    project: String,
    set: String,
}

impl Story {
    async fn new(customer: &Customer) -> Self {
        let (api, project) = (customer.api.clone(), create_project(&customer.api).await);
        let sets = format!("{project}/testsets");
        let set = api.post(&sets, json!({"Name": "Nightly"})).await.created();
        let set = format!("{sets}/{}", id(&set));
        Self { api, project, set }
    }

    /// Uploads the results of the two tests, and returns the path of the execution.
    async fn run(&self, flaky: char, broken: char) -> String {
        let test = |name: &str, letter| {
            let failure = if letter == 'F' { "<failure message='lost'/>" } else { "" };
            format!("<testcase classname='shop' name='{name}'>{failure}</testcase>")
        };
        let tests = [test("flaky", flaky), test("broken", broken), test("fine", 'P')].concat();
        let report = format!("<testsuite name='s'>{tests}</testsuite>");
        let uploaded = upload(&self.api, &self.set, report).await.created();
        format!("{}/executions/{}", self.project, id(&uploaded))
    }

    async fn verdict(&self, execution: &str) -> Value {
        self.api.get(&format!("{execution}/verdict")).await.ok()["State"].clone()
    }

    async fn create(&self, name: &str, is_dry: bool) -> String {
        let monitor = json!({
            "Name": name, "Measure": "Recoveries", "Runs": 20, "Threshold": 2, "Action": "Mute",
            "RecoverAfter": 3, "DryRun": is_dry,
        });
        let monitors = format!("{}/monitors", self.project);
        format!("{monitors}/{}", id(&self.api.post(&monitors, monitor).await.created()))
    }

    /// Waits until a monitor has acted so often, and returns its actions, the latest first.
    async fn actions(&self, monitor: &str, count: usize) -> Vec<Value> {
        eventually("the actions of a monitor", || async {
            let actions = self.api.get(&format!("{monitor}/actions")).await.ok();
            let actions = actions.as_array().unwrap().clone();
            (actions.len() == count).then_some(actions)
        })
        .await
    }

    /// Returns the states of test cases that are not enabled.
    async fn states(&self) -> Vec<Value> {
        let states = self.api.get(&format!("{}/testcasestates", self.project)).await.ok();
        states.as_array().unwrap().clone()
    }
}

#[tokio::test]
async fn a_monitor_mutes_a_flaky_test_until_it_is_repaired() {
    let customer = Customer::new().await;
    let story = Story::new(&customer).await;
    let (real, dry) = (story.create("Flaky", false).await, story.create("Trial", true).await);

    // One test fails at random. The other one breaks, and is broken.
    let mut last = String::new();
    for (flaky, broken) in "PFPFPFP".chars().zip("PPPPPFF".chars()) {
        last = story.run(flaky, broken).await;
    }
    assert_eq!(story.verdict(&last).await, "Passed", "the broken test fails as before");
    let muted = story.actions(&real, 1).await.remove(0);
    assert_eq!((&muted["Action"], &muted["IsDry"]), (&json!("Muted"), &json!(false)));
    assert_eq!(muted["TestCaseIdentifier"], "shop.flaky");
    assert_eq!(muted["Reason"], "recovered 2 times in its last 6 runs");
    let trial = story.actions(&dry, 1).await.remove(0);
    assert_eq!((&trial["Action"], &trial["IsDry"]), (&json!("Muted"), &json!(true)));
    let states = story.states().await;
    assert_eq!(states.len(), 1);
    assert_eq!(
        (&states[0]["State"], &states[0]["Owner"]),
        (&json!("Muted"), &json!("monitor Flaky"))
    );

    // It fails again, and the gate passes.
    let red = story.run('F', 'F').await;
    assert_eq!(story.verdict(&red).await, "Passed");
    let summary = story.api.get(&format!("{red}/summary")).await.ok();
    assert_eq!(summary["Changes"]["Muted"], 1);

    // It is repaired: after three passes in a row, it counts again.
    for _ in 0..3 {
        last = story.run('P', 'F').await;
    }
    let recovered = story.actions(&real, 2).await.remove(0);
    assert_eq!(recovered["Action"], "Recovered");
    assert_eq!(recovered["ExecutionId"], last.rsplit('/').next().unwrap());
    assert!(story.states().await.is_empty());
    assert_eq!(story.actions(&dry, 2).await[0]["Action"], "Recovered");
    let summary = story.api.get(&format!("{red}/summary")).await.ok();
    assert_eq!(summary["Changes"]["Muted"], 1, "what was muted stays muted");
    eventually("the notifications of the state", || async {
        let notified = story.api.get("/api/notifications?source=TestCaseState").await.ok();
        let notified = notified.as_array().unwrap().iter().map(|one| one["Action"].clone());
        (notified.collect::<Vec<_>>() == ["Deleted", "Created"]).then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_state_of_a_test_case_ends_at_its_date() {
    let customer = Customer::new().await;
    let story = Story::new(&customer).await;
    let first = story.run('F', 'P').await;
    assert_eq!(story.verdict(&first).await, "Failed");
    let reports = story.api.get(&format!("{first}/reports?change=New")).await.ok();
    let case = reports[0]["TestCaseId"].as_str().unwrap();
    let state = format!("{}/testcases/{case}/state", story.project);
    let muted = json!({"State": "Muted", "Until": in_seconds(3), "Reason": "odd"});
    story.api.put(&state, muted).await.ok();
    assert_eq!(story.states().await[0]["TestCaseIdentifier"], "shop.flaky");

    eventually("the end of the state", || async {
        let notified = story.api.get("/api/notifications?source=TestCaseState").await.ok();
        (notified[0]["Action"] == "Expired").then_some(())
    })
    .await;

    assert_eq!(story.api.get(&state).await.ok()["State"], "Enabled");
    assert!(story.states().await.is_empty());
}
