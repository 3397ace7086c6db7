//! The documentation page in a browser.

use std::{process::Stdio, time::Duration};

use assay_testkit::eventually;
use fantoccini::{Client, ClientBuilder, Locator, elements::Element};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

use crate::{customer::Customer, world::create_project};

/// Debian's browser in a new session without access to other hosts.
struct Browser {
    client: Client,
    _driver: Child,
}

/// Starts the driver of the browser, and returns it with its port. Returns `None` if it exits: it
/// binds a port of IPv4 first, which another program may have in IPv6.
async fn driver() -> Option<(Child, u16)> {
    let mut driver = Command::new("chromedriver")
        .arg("--port=0")
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap_or_else(|error| panic!("{error}: run deploy/local/install test"));
    let mut output = BufReader::new(driver.stdout.take()?).lines();
    while let Some(line) = output.next_line().await.unwrap() {
        if let Some((_, port)) = line.split_once("successfully on port ") {
            return Some((driver, port.trim_end_matches('.').parse().unwrap()));
        }
    }
    None
}

impl Browser {
    async fn open() -> Self {
        let (driver, port) = match driver().await {
            Some(started) => started,
            None => driver().await.expect("chromedriver exited twice"),
        };
        let arguments = json!([
            "--headless=new",
            "--disable-dev-shm-usage",
            // Containers do not allow namespaces, and root does not need them.
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

    /// Waits for an element.
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

    /// Reads the text of an element until it is right.
    async fn read_until(&self, css: &str, is_right: impl Fn(&str) -> bool) -> String {
        eventually(css, || async {
            let text = self.client.find(Locator::Css(css)).await.ok()?.text().await.ok()?;
            is_right(&text).then_some(text)
        })
        .await
    }

    /// The URLs of all resources that the page has loaded.
    async fn loaded(&self) -> Vec<String> {
        let names = "return performance.getEntriesByType('resource').map(entry => entry.name)";
        let names: Value = self.client.execute(names, Vec::new()).await.unwrap();
        serde_json::from_value(names).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_can_be_tried_on_the_documentation_page() {
    let customer = Customer::new().await;
    let made = create_project(&customer.api).await;
    let browser = Browser::open().await;

    browser.client.goto(&format!("{}/docs/", customer.url())).await.unwrap();
    browser.read_until(".info .title", |title| title.starts_with("Assay")).await;
    browser.click("#operations-Projects-list_projects").await;
    let status = ".live-responses-table tbody .response-col_status";
    let execute = "#operations-Projects-list_projects .execute";
    browser.click(execute).await;
    browser.read_until(status, |status| status.starts_with("401")).await;

    browser.click(".btn.authorize").await;
    browser.type_into(".auth-container input", customer.api.token()).await;
    browser.click(".auth-container .btn.authorize").await;
    browser.click(".auth-container .btn-done").await;
    browser.click(execute).await;
    browser.read_until(status, |status| status.starts_with("200")).await;
    let id = made.rsplit('/').next().unwrap();
    browser
        .read_until(".live-responses-table tbody .response-col_description", |it| it.contains(id))
        .await;

    let elsewhere =
        |name: &String| !name.starts_with(&customer.url()) && !name.starts_with("data:");
    let loaded = browser.loaded().await;
    assert!(loaded.len() > 3, "{loaded:#?}");
    assert_eq!(loaded.into_iter().find(elsewhere), None);
    browser.client.clone().close().await.unwrap();
}
