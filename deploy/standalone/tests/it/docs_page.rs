//! The page that shows the interface, in a browser.

use std::{process::Stdio, time::Duration};

use assay_testkit::eventually;
use fantoccini::{Client, ClientBuilder, Locator, elements::Element};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

use crate::world::{World, project};

/// Debian's browser, in a session of its own, which finds no host but this one.
struct Browser {
    client: Client,
    _driver: Child,
}

impl Browser {
    async fn open() -> Self {
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("{error}: run deploy/local/install test"));
        let mut said = BufReader::new(driver.stdout.take().unwrap()).lines();
        let port: u16 = loop {
            let line = said.next_line().await.unwrap().expect("chromedriver has ended");
            if let Some((_, port)) = line.split_once("successfully on port ") {
                break port.trim_end_matches('.').parse().unwrap();
            }
        };
        let arguments = json!([
            "--headless=new",
            "--disable-dev-shm-usage",
            // Containers let nobody make namespaces, and root has no use of them.
            "--no-sandbox",
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
            "--window-size=1200,2000",
        ]);
        let options = json!({"goog:chromeOptions": {"args": arguments}});
        let client = ClientBuilder::new(HttpConnector::new())
            .capabilities(options.as_object().unwrap().clone())
            .connect(&format!("http://127.0.0.1:{port}"))
            .await
            .unwrap();
        Self { client, _driver: driver }
    }

    /// What there is when it is there.
    async fn find(&self, css: &str) -> Element {
        let wait = self.client.wait().at_most(Duration::from_secs(20));
        wait.for_element(Locator::Css(css)).await.unwrap_or_else(|error| panic!("{css}: {error}"))
    }

    async fn click(&self, css: &str) {
        self.find(css).await.click().await.unwrap_or_else(|error| panic!("{css}: {error}"));
    }

    async fn type_into(&self, css: &str, text: &str) {
        self.find(css).await.send_keys(text).await.unwrap();
    }

    /// Reads that text until it is as it should be.
    async fn reads(&self, css: &str, is_right: impl Fn(&str) -> bool) -> String {
        eventually(css, || async {
            let text = self.client.find(Locator::Css(css)).await.ok()?.text().await.ok()?;
            is_right(&text).then_some(text)
        })
        .await
    }

    /// Where the page has loaded something from.
    async fn loaded(&self) -> Vec<String> {
        let names = "return performance.getEntriesByType('resource').map(entry => entry.name)";
        let names: Value = self.client.execute(names, Vec::new()).await.unwrap();
        serde_json::from_value(names).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_tries_an_operation_in_the_browser_and_sees_the_answer() {
    let world = World::start().await;
    let made = project(&world.api).await;
    let browser = Browser::open().await;

    browser.client.goto(&format!("{}/docs/", world.url())).await.unwrap();
    browser.reads(".info .title", |title| title.starts_with("Assay")).await;
    browser.click("#operations-Projects-list_projects").await;
    let status = ".live-responses-table tbody .response-col_status";
    let execute = "#operations-Projects-list_projects .execute";
    browser.click(execute).await;
    browser.reads(status, |status| status.starts_with("401")).await;

    browser.click(".btn.authorize").await;
    browser.type_into(".auth-container input", world.api.token()).await;
    browser.click(".auth-container .btn.authorize").await;
    browser.click(".auth-container .btn-done").await;
    browser.click(execute).await;
    browser.reads(status, |status| status.starts_with("200")).await;
    let id = made.rsplit('/').next().unwrap();
    browser
        .reads(".live-responses-table tbody .response-col_description", |it| it.contains(id))
        .await;

    let elsewhere = |name: &String| !name.starts_with(&world.url()) && !name.starts_with("data:");
    let loaded = browser.loaded().await;
    assert!(loaded.len() > 3, "{loaded:#?}");
    assert_eq!(loaded.into_iter().find(elsewhere), None);
    browser.client.clone().close().await.unwrap();
    world.stop().await;
}
