//! A client of TestRail's interface.

use assay_testkit::{Answer, Api};
use reqwest::{
    Method,
    multipart::{Form, Part},
};
use serde_json::{Value, json};

use crate::{customer::Customer, reports::report_path, world::id};

/// A client with a token, and a project.
pub(super) struct Client {
    api: Api,
    /// The client of the own interface.
    pub(super) assay: Api,
    pub(super) token: String,
    /// The number and the id of the project.
    pub(super) project: i64,
    pub(super) project_id: String,
}

impl Client {
    /// Creates a project with this name.
    pub(super) async fn new(customer: &Customer, name: &str) -> Self {
        let (assay, api) = (customer.api.clone(), customer.anonymous());
        let body = json!({"Name": "Agents", "UsagePermission": "Read, Write, Execute"});
        let token = assay.post("/api/users/current/tokens", body).await.created();
        let token = token["Secret"].as_str().unwrap().to_owned();
        let project = assay.post("/api/projects", json!({ "Name": name })).await.created();
        let project_id = id(&project).to_owned();
        let mut client = Self { api, assay, token, project: 0, project_id };
        let projects = client.get("get_projects").await;
        let projects = projects["projects"].as_array().unwrap();
        let project = projects.iter().find(|project| project["name"] == name).unwrap();
        client.project = number(&project["id"]);
        client
    }

    /// Calls a method, and returns its answer whatever the status.
    pub(super) async fn call(&self, method: Method, call: &str, body: Option<&Value>) -> Answer {
        let request = self.api.request(method, &format!("/index.php?/api/v2/{call}"));
        let request = request.basic_auth("ada@example.org", Some(&self.token));
        let request = request.header("Content-Type", "application/json");
        Answer::of(match body {
            Some(body) => request.body(body.to_string()),
            None => request,
        })
        .await
    }

    pub(super) async fn get(&self, call: &str) -> Value {
        self.call(Method::GET, call, None).await.ok()
    }

    pub(super) async fn post(&self, call: &str, body: Value) -> Value {
        self.call(Method::POST, call, Some(&body)).await.ok()
    }

    /// Adds a file to a result.
    pub(super) async fn attach(&self, result: i64, name: &str, text: &str) -> Value {
        let path = format!("/index.php?/api/v2/add_attachment_to_result/{result}");
        let request = self.api.request(Method::POST, &path);
        let part = Part::text(text.to_owned()).file_name(name.to_owned());
        let form = Form::new().part("attachment", part);
        let request = request.basic_auth("ada@example.org", Some(&self.token)).multipart(form);
        Answer::of(request).await.ok()
    }

    /// Returns a client of the same project with another token.
    pub(super) fn with_token(&self, token: &str) -> Self {
        Self {
            api: self.api.clone(),
            assay: self.assay.clone(),
            token: token.to_owned(),
            project: self.project,
            project_id: self.project_id.clone(),
        }
    }

    /// Returns the execution whose page a link leads to.
    pub(super) async fn execution(&self, url: &Value) -> Value {
        let id = url.as_str().unwrap().rsplit('/').next().unwrap().to_owned();
        let path = format!("/api/projects/{}/executions/{id}", self.project_id);
        self.assay.get(&path).await.ok()
    }

    /// Returns the first instance of the test case whose identifier ends with a text.
    pub(super) async fn instance(&self, execution: &Value, case: &str) -> Value {
        let reports = execution["TestReports"].as_array().unwrap();
        let is_sought =
            |report: &&Value| report["TestCaseIdentifier"].as_str().unwrap().ends_with(case);
        let project = format!("/api/projects/{}", self.project_id);
        let report = report_path(&project, reports.iter().find(is_sought).unwrap());
        let instances = self.assay.get(&format!("{report}/instances")).await.ok();
        self.assay.get(&format!("{report}/instances/{}", id(&instances[0]))).await.ok()
    }

    /// Returns the executions of the project, newest first.
    pub(super) async fn executions(&self) -> Vec<Value> {
        let path = format!("/api/projects/{}/executions", self.project_id);
        self.assay.get(&path).await.ok().as_array().unwrap().clone()
    }

    /// Returns the identifiers of the test cases of the project, in alphabetical order.
    pub(super) async fn identifiers(&self) -> Vec<String> {
        let path = format!("/api/projects/{}/testcases", self.project_id);
        let cases = self.assay.get(&path).await.ok();
        let identifier = |case: &Value| case["Identifier"].as_str().unwrap().to_owned();
        let mut identifiers: Vec<String> =
            cases.as_array().unwrap().iter().map(identifier).collect();
        identifiers.sort();
        identifiers
    }
}

pub(super) fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("a number instead of {value}"))
}

/// Returns the number of test cases of an execution: all, passed, failed and skipped.
pub(super) fn counts(execution: &Value) -> [u64; 4] {
    ["Total", "Passed", "Failed", "Canceled"]
        .map(|count| execution["Statistic"][format!("TestCases{count}")].as_u64().unwrap())
}
