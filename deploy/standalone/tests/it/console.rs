//! The console: pages to read and judge results.

mod accessibility;
mod account;
mod conflict;
mod first_session;
mod gate;
mod grid;
mod hostile;
mod judgement;
mod look;
mod monitor;
mod numbers;
mod pages;
mod password;
mod pool;
mod review;
mod session;
mod share;
mod state;
mod story;
mod ticket;
mod triage;
mod usage;
mod version;
mod weight;
mod whole;

use assay_testkit::{Answer, Api};
use fantoccini::Locator;
use reqwest::{Client, Method, RequestBuilder, redirect::Policy};
use serde_json::{Value, json};

use crate::{
    browser::Browser,
    customer::Customer,
    people::{Member, password_of},
    world::id,
};

/// Permissions of a developer.
const DEVELOPER: &str = "Login, Read, Write, Execute, Accept, Reject";

/// A user with the pages of an Assay.
pub(crate) struct Reader {
    url: String,
    member: Member,
    client: Client,
}

impl Reader {
    /// A developer of a customer.
    pub(crate) async fn new(customer: &Customer) -> Self {
        Self::with(customer, "grace", DEVELOPER).await
    }

    /// Uploads a report in a new customer. Returns the execution, and its path in the interface.
    async fn of_report(junit: &str) -> (Self, Value, String) {
        let reader = Self::new(&Customer::new().await).await;
        let (execution, path) = reader.upload(junit).await;
        (reader, execution, path)
    }

    async fn with(customer: &Customer, name: &str, permissions: &str) -> Self {
        let member = customer.create_member(name, permissions).await;
        let client = Client::builder().redirect(Policy::none()).build().unwrap();
        Self { url: customer.url(), member, client }
    }

    fn api(&self) -> &Api {
        &self.member.api
    }

    /// A request for a page, with the cookie that a login has set.
    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let cookie = format!("assay={}", self.api().token());
        self.client.request(method, format!("{}{path}", self.url)).header("cookie", cookie)
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        Answer::of(self.request(Method::GET, path)).await
    }

    /// Fills in the form of the page that the browser shows.
    async fn log_in(&self, browser: &Browser) {
        browser.type_into("#email", &self.member.email).await;
        browser.type_into("#password", &password_of(&self.member.email)).await;
        browser.click(".login button").await;
        browser.find(".user").await;
    }

    /// Opens a page after a login.
    async fn open(&self, browser: &Browser, path: &str) {
        browser.client.goto(&format!("{}{path}", self.url)).await.unwrap();
        if browser.client.find(Locator::Css("form.login")).await.is_ok() {
            self.log_in(browser).await;
        }
    }

    /// Uploads a report to a new execution, and returns the execution and its path.
    async fn upload(&self, junit: &str) -> (Value, String) {
        let (execution, path) = self.start().await;
        let report = self.api().request(Method::POST, &format!("{path}/reports"));
        let report = report.header("content-type", "application/xml").body(junit.to_owned());
        Answer::of(report).await.expect(200);
        self.api().post(&format!("{path}/complete"), json!({})).await.expect(200);
        (execution, path)
    }

    /// Opens an execution of the set `Every night`.
    async fn start(&self) -> (Value, String) {
        let names = json!({"Project": "Shop", "TestSet": "Every night", "Branch": "main"});
        let execution = self.api().post("/api/executions", names).await.created();
        let project = execution["ProjectId"].as_str().unwrap();
        let path = format!("/api/projects/{project}/executions/{}", id(&execution));
        (execution, path)
    }
}

/// Fills in the form of a request.
fn filled(request: RequestBuilder, fields: &[(&str, &str)]) -> RequestBuilder {
    let mut form = url::form_urlencoded::Serializer::new(String::new());
    let form = form.extend_pairs(fields).finish();
    request.header("content-type", "application/x-www-form-urlencoded").body(form)
}

/// A report of tests that fail with their message, or pass without one.
fn tests<'a>(of: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let case = |(name, message): (&str, &str)| {
        let failure = format!("<failure message='{message}'>{message}</failure>");
        let failure = if message.is_empty() { String::new() } else { failure };
        format!("<testcase classname='checkout' name='{name}' time='8.2'>{failure}</testcase>")
    };
    format!("<testsuite>{}</testsuite>", of.into_iter().map(case).collect::<String>())
}

/// A report of two tests; each fails with a message if it has one.
fn junit(card: &str, transfer: &str) -> String {
    tests([("pays by card", card), ("pays by transfer", transfer)])
}
