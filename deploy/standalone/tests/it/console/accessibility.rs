//! Pages meet the Web Content Accessibility Guidelines, as far as axe can check them. With a directory
//! in `SCREENSHOTS`, the test also takes pictures of all pages, for people to look at.

use std::{env, fs, path::Path};

use assay_testkit::eventually;
use serde_json::{Value, json};

use super::{DEVELOPER, Reader, junit, tests};
use crate::{
    browser::Browser,
    customer::Customer,
    world::{id, in_days},
};

const CHECK: &str = "
    const done = arguments[0];
    const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
    const nodes = rule => rule.nodes.map(node => `${rule.id}: ${node.html}`);
    axe.run({runOnly: tags}).then(found => done(found.violations.flatMap(nodes)));";

/// The elements that make the page wider than the window.
const WIDE: &str = "
    const isWide = element => element.getBoundingClientRect().right > innerWidth;
    const elements = [...document.querySelectorAll('body *')];
    const isPageWide = document.documentElement.scrollWidth > innerWidth;
    return isPageWide ? elements.filter(isWide).map(element => element.outerHTML.slice(0, 200)) : [];";

impl Browser {
    /// Returns the violations on the page, and what makes it wider than the window.
    pub(super) async fn violations(&self) -> (Value, Value) {
        let axe = "../../target/tools/node/node_modules/axe-core/axe.min.js";
        let axe = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(axe));
        let axe = axe.expect("axe: run deploy/local/install test");
        self.client.execute(&axe, Vec::new()).await.unwrap();
        let violations = self.client.execute_async(CHECK, Vec::new()).await.unwrap();
        (violations, self.client.execute(WIDE, Vec::new()).await.unwrap())
    }

    /// Takes a picture of the page, if a directory for them is set.
    async fn take_picture(&self, page: &str, width: u32, is_dark: bool) {
        let Some(directory) = env::var_os("SCREENSHOTS") else { return };
        let colours = if is_dark { "dark" } else { "light" };
        let name = format!("{}-{width}-{colours}.png", page.replace(['/', '?', '='], "_"));
        let picture = self.client.screenshot().await.unwrap();
        fs::write(Path::new(&directory).join(name), picture).unwrap();
    }
}

/// Uploads an outage, and returns the id of its incident.
async fn outage(reader: &Reader, project: &str) -> String {
    let names: Vec<String> = (0..12).map(|nr| format!("pays {nr}")).collect();
    reader.upload(&tests(names.iter().map(|name| (name.as_str(), "no bank")))).await;
    let incidents = format!("/api/projects/{project}/incidents");
    eventually("the incident", || async {
        let incidents = reader.api().get(&incidents).await.ok();
        Some(incidents[0]["Id"].as_str()?.to_owned())
    })
    .await
}

/// Creates a monitor and a pool, and returns their pages and that of the hours of execution.
async fn pages_of_records(reader: &Reader, project: &str) -> Vec<String> {
    let (api, at) = (reader.api(), format!("/projects/{project}"));
    let monitor = json!({
        "Name": "Flaky", "Measure": "Recoveries", "Threshold": 3, "Action": "Mute", "DryRun": true,
    });
    let monitor = api.post(&format!("/api{at}/monitors"), monitor).await.created();
    let contents = json!([{"Name": "USER", "Content": "ada"},
        {"Name": "PIN", "Content": "1234", "IsSecured": true}]);
    let pool = json!({"Name": "accounts", "Values": [{"Contents": contents}]});
    let pool = api.post(&format!("/api{at}/pools"), pool).await.created();
    let value = pool["Values"][0]["Id"].as_str().unwrap();
    eventually("the hours of execution", || async {
        let times = api.get("/api/executiontimes").await.ok();
        (times != json!([])).then_some(())
    })
    .await;
    vec![
        format!("{at}/monitors"),
        format!(
            "{at}/monitors?name=Slow&measure=Duration&threshold=1&runs=5&action=Mute&recoverAfter=5\
             &replay=true"
        ),
        format!("{at}/monitors/{}", id(&monitor)),
        format!("{at}/pools"),
        format!("{at}/pools/{}", id(&pool)),
        format!("{at}/pools/{}?value={value}", id(&pool)),
        "/usage".to_owned(),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_accessible_on_screens() {
    assert_accessible(1200, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_accessible_in_dark_colours_on_screens() {
    assert_accessible(1200, true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_accessible_on_phones() {
    assert_accessible(360, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_accessible_in_dark_colours_on_phones() {
    assert_accessible(360, true).await;
}

/// 320 pixels are a screen at 400 %.
#[tokio::test(flavor = "multi_thread")]
async fn pages_are_accessible_on_enlarged_screens() {
    assert_accessible(320, false).await;
}

/// Opens every page in a window of this width, in pixels.
async fn assert_accessible(width: u32, is_dark: bool) {
    let customer = Customer::new().await;
    let permissions = format!("{DEVELOPER}, ExecutionTimes, Invoicing");
    let reader = Reader::with(&customer, "grace", &permissions).await;
    let (first, _) = reader.upload(&junit("", "no printer")).await;
    let (execution, path) = reader.upload(&junit("no bank", "no printer")).await;
    let reports = reader.api().get(&format!("{path}/reports")).await.ok();
    let cause = reader.api().get(&format!("{path}/failures")).await.ok();
    let cause = cause[0]["Fingerprint"].as_str().unwrap();
    let known = json!({
        "Fingerprint": cause, "Status": "Accepted", "Known": {"MutedUntil": in_days(30)},
    });
    reader.api().put(&format!("{path}/reviews"), known).await.ok();
    let project = execution["ProjectId"].as_str().unwrap();
    let incident = outage(&reader, project).await;
    let records = pages_of_records(&reader, project).await;
    let share = reader.api().post(&format!("{path}/shares"), json!({})).await.created();
    let shared = format!("/shared/{}", share["Token"].as_str().unwrap());
    let pages = [
        format!("/executions/{}/shares", id(&execution)),
        format!("{shared}/reports/{}", id(&reports[0])),
        shared,
        "/".to_owned(),
        format!("/projects/{project}"),
        format!("/projects/{project}/sets/{}", execution["TestSetId"].as_str().unwrap()),
        format!("/projects/{project}/sets/{}?all=tests", execution["TestSetId"].as_str().unwrap()),
        format!("/projects/{project}/sets"),
        format!("/projects/{project}/sets/{}/executions", execution["TestSetId"].as_str().unwrap()),
        format!(
            "/projects/{project}/sets/{}/gate?maxNewFailures=9&replay=true",
            execution["TestSetId"].as_str().unwrap()
        ),
        format!("/executions/{}", id(&execution)),
        format!("/executions/{}?view=all", id(&execution)),
        format!("/executions/{}/comparison?with={}", id(&first), id(&execution)),
        format!("/executions/{}/triage", id(&execution)),
        format!("/executions/{}?muted=true", id(&execution)),
        format!("/executions/{}?fingerprint={cause}", id(&execution)),
        format!("/reports/{}", id(&reports[0])),
        format!("/reports/{}/log", id(&reports[0])),
        "/engines".to_owned(),
        format!("/cases/{}", reports[0]["TestCaseId"].as_str().unwrap()),
        format!("/projects/{project}/knownfailures"),
        format!("/projects/{project}/causes"),
        format!("/projects/{project}/incidents"),
        format!("/projects/{project}/incidents/{incident}"),
        format!("/projects/{project}/cases"),
        format!("/projects/{project}/insights"),
        format!("/projects/{project}/insights?kind=Flaky"),
        format!("/projects/{project}/insights?kind=NeverRun"),
        "/account".to_owned(),
        "/nothing".to_owned(),
    ];
    let browser = Browser::open_in((width, 1600), is_dark).await;
    browser.client.goto(&format!("{}/login", reader.url)).await.unwrap();
    let shown = "return [innerWidth, matchMedia('(prefers-color-scheme: dark)').matches]";
    let shown = browser.client.execute(shown, Vec::new()).await.unwrap();
    assert_eq!(shown, json!([width, is_dark]));
    let none = (json!([]), json!([]));
    for page in ["/reset-password", "/forgot-password", "/login"] {
        browser.client.goto(&format!("{}{page}", reader.url)).await.unwrap();
        assert_eq!(browser.violations().await, none, "{page} {width} {is_dark}");
        browser.take_picture(page, width, is_dark).await;
    }
    reader.log_in(&browser).await;
    for page in pages.iter().chain(&records) {
        reader.open(&browser, page).await;
        assert_eq!(browser.violations().await, none, "{page} {width} {is_dark}");
        browser.take_picture(page, width, is_dark).await;
    }
    browser.client.clone().close().await.unwrap();
}
