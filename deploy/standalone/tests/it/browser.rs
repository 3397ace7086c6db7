//! A browser that tests control.

use std::{path::Path, process::Stdio, time::Duration};

use assay_testkit::eventually;
use fantoccini::{Client, ClientBuilder, Locator, elements::Element};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

/// Debian's browser without a window, which takes a third of the time to start. Elsewhere it is the one that the driver
/// finds.
const WITHOUT_WINDOW: &str = "/usr/lib/chromium/chromium-headless-shell";

/// A browser in a new session without access to other hosts.
pub(crate) struct Browser {
    pub(crate) client: Client,
    _driver: Child,
}

/// Starts the driver of the browser, and returns it with its port. Returns `None` if it exits: it
/// binds a port of IPv4 first, which another program may have in IPv6. Its browser is in a time zone.
async fn driver(time_zone: &str) -> Option<(Child, u16)> {
    let mut driver = Command::new("chromedriver")
        .arg("--port=0")
        .env("TZ", time_zone)
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
    pub(crate) async fn open() -> Self {
        Self::open_with(json!({})).await
    }

    /// Opens a browser in a time zone.
    pub(crate) async fn open_at(time_zone: &str) -> Self {
        Self::open_with_zone(json!({}), time_zone).await
    }

    /// Opens a browser in which pages cannot run scripts.
    pub(crate) async fn open_without_scripts() -> Self {
        Self::open_with(json!({"args": ["--blink-settings=scriptEnabled=false"]})).await
    }

    /// Opens a browser with a width and a height in pixels that prefers dark colours or light ones.
    pub(crate) async fn open_in((width, height): (u32, u32), is_dark: bool) -> Self {
        let scheme = format!("--blink-settings=preferredColorScheme={}", u8::from(!is_dark));
        let screen = json!({"width": width, "height": height, "pixelRatio": 1, "mobile": false});
        Self::open_with(json!({"args": [scheme], "mobileEmulation": {"deviceMetrics": screen}}))
            .await
    }

    /// Opens a browser with further options, and arguments in addition to those of all.
    async fn open_with(options: Value) -> Self {
        Self::open_with_zone(options, "UTC").await
    }

    async fn open_with_zone(mut options: Value, time_zone: &str) -> Self {
        let (driver, port) = match driver(time_zone).await {
            Some(started) => started,
            None => driver(time_zone).await.expect("chromedriver exited twice"),
        };
        let arguments = [
            "--headless=new",
            "--disable-dev-shm-usage",
            // Containers do not allow namespaces, and root does not need them.
            "--no-sandbox",
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
            "--window-size=1200,2000",
        ];
        let own = options["args"].as_array().cloned().unwrap_or_default();
        options["args"] = arguments.into_iter().map(Value::from).chain(own).collect();
        if Path::new(WITHOUT_WINDOW).exists() {
            options["binary"] = WITHOUT_WINDOW.into();
        }
        let options = json!({"goog:chromeOptions": options});
        let client = ClientBuilder::new(HttpConnector::new())
            .capabilities(options.as_object().unwrap().clone())
            .connect(&format!("http://127.0.0.1:{port}"))
            .await
            .unwrap();
        Self { client, _driver: driver }
    }

    /// Waits for an element.
    pub(crate) async fn find(&self, css: &str) -> Element {
        let wait = self.client.wait().at_most(Duration::from_secs(20));
        wait.for_element(Locator::Css(css)).await.unwrap_or_else(|error| panic!("{css}: {error}"))
    }

    pub(crate) async fn click(&self, css: &str) {
        self.find(css).await.click().await.unwrap_or_else(|error| panic!("{css}: {error}"));
    }

    pub(crate) async fn type_into(&self, css: &str, text: &str) {
        self.find(css).await.send_keys(text).await.unwrap();
    }

    /// Reads the text of an element until it is right.
    pub(crate) async fn read_until(&self, css: &str, is_right: impl Fn(&str) -> bool) -> String {
        eventually(css, || async {
            let text = self.client.find(Locator::Css(css)).await.ok()?.text().await.ok()?;
            is_right(&text).then_some(text)
        })
        .await
    }

    /// The URLs of all resources that the page has loaded.
    pub(crate) async fn loaded(&self) -> Vec<String> {
        let names = "return performance.getEntriesByType('resource').map(entry => entry.name)";
        let names: Value = self.client.execute(names, Vec::new()).await.unwrap();
        serde_json::from_value(names).unwrap()
    }
}
