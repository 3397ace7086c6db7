//! Dumps of the databases, one after the other, while Assay is used.

use assay_testkit::{Answer, Api};
use reqwest::Method;
use serde_json::json;

use super::{
    FAILED, PASSED, Shop, assert_reports_are_right,
    commands::{Directory, verified},
};
use crate::{
    fleet::{Fleet, SERVICES, Server, new_dir},
    world::id,
};

const SECTION: &str = "Dumps";

/// Uploads a file with a result of the test; returns the path by which it is read.
async fn attach(api: &Api, shop: &Shop) -> String {
    let Shop { project, set } = shop;
    let open = api.post(&format!("{set}/executions"), json!({"Mode": "External"})).await.created();
    let at = format!("{project}/executions/{}", id(&open));
    let file = format!("{at}/results/artifacts/log.txt");
    Answer::of(api.request(Method::PUT, &file).body("a log")).await.ok();
    let result = json!([{"Identifier": "pays", "Result": "Passed", "ExecutionLogUri": "log.txt"}]);
    api.post(&format!("{at}/results"), result).await.ok();
    api.post(&format!("{at}/complete"), json!({})).await.ok();
    let report = &open["TestReports"][0];
    let [case, plan] = ["TestCaseId", "TestPlanId"].map(|name| report[name].as_str().unwrap());
    let report = id(report);
    let instances =
        format!("{project}/testcases/{case}/testplans/{plan}/testreports/{report}/instances");
    let instance = api.get(&instances).await.ok()[0].clone();
    format!("{instances}/{}", id(&instance))
}

/// Reads the file of an instance through its link.
async fn attached(api: &Api, instance: &str) -> String {
    let instance = api.get(instance).await.ok();
    let link = instance["ExecutionLogUri"].as_str().unwrap().to_owned();
    let path = link.strip_prefix("https://assay.test").unwrap();
    String::from_utf8(api.get(path).await.expect(200).body.clone()).unwrap()
}

/// Dumps a fleet while a failure is reported and accepted after each dump.
async fn dump(
    directory: &Directory,
    fleet: &Fleet,
    api: &Api,
    shop: &Shop,
    artifacts: &std::path::Path,
) {
    let dump = directory.run((SECTION, 0), &fleet.postgres, artifacts, &[]);
    let writes = async {
        for number in 1..=SERVICES.len() {
            directory.dumped(number).await;
            let lost = shop.report(api, FAILED).await;
            shop.shows(api, id(&lost), "Failed").await;
            shop.is_notified(api, &lost).await;
            let report = &lost["TestReports"][0];
            let reports = format!(
                "{}/testcases/{}/testplans/{}/testreports/{}",
                shop.project,
                report["TestCaseId"].as_str().unwrap(),
                report["TestPlanId"].as_str().unwrap(),
                id(report)
            );
            api.put(&reports, json!({"Status": "Accepted"})).await.ok();
            let case = json!({"Name": format!("Added after dump {number}")});
            api.post(&format!("{}/testcases", shop.project), case).await.created();
            directory.go_on(number);
        }
    };
    let ((done, output), ()) = tokio::join!(dump, writes);
    assert!(done, "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn dumps_with_writes_between_them_are_restored_without_differences() {
    let (directory, from, to) = (Directory::new(new_dir("dumps")), new_dir("from"), new_dir("to"));
    std::fs::create_dir_all(&to).unwrap();
    let settings = [("ASSAY_ARTIFACTS", from.to_str().unwrap())];
    let fleet = Fleet::start(&[None], &settings).await;
    let api = fleet.admins().await.remove(0);
    let shop = Shop::open(&api).await;
    shop.report(&api, FAILED).await;
    let passed = shop.report(&api, PASSED).await;
    let attachment = attach(&api, &shop).await;
    let kept = shop.executions(&api).await;
    shop.shows(&api, &kept[0], "Passed").await;
    assert_eq!(kept[1], id(&passed));
    dump(&directory, &fleet, &api, &shop, &from).await;
    fleet.stop().await.stop().await;

    let server = Server::create(&new_dir("restored")).await;
    let (done, output) = directory.run((SECTION, 1), &server, &to, &[]).await;
    assert!(done, "{output}");
    let settings = [("ASSAY_ARTIFACTS", to.to_str().unwrap())];
    let fleet = Fleet::on(server, &[None], &settings).await;
    let (done, output) = directory.run((SECTION, 2), &fleet.postgres, &to, &[]).await;
    assert!(done, "{output}");
    verified(&directory, (SECTION, 3), &fleet, &to).await;

    let api = fleet.admins().await.remove(0);
    assert_eq!(shop.executions(&api).await, kept, "those of the first dump");
    shop.shows(&api, &kept[0], "Passed").await;
    assert_eq!(attached(&api, &attachment).await, "a log");
    assert_reports_are_right(&fleet, &api, &shop, ["New", "Fixed"]).await;
    fleet.stop().await.stop().await;
}
