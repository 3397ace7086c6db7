//! One record of each kind, and what tests need to know of it.

use assay_testkit::Api;
use serde_json::{Value, json};

use crate::world::{id, project};

/// A record that was made for a test.
pub(super) struct Record {
    pub(super) noun: &'static str,
    /// Its path, without `/api` missing.
    pub(super) path: String,
    /// The list that it was added to.
    pub(super) list: String,
    /// What it was made from.
    pub(super) body: Value,
    /// A field that must be there, and a value of the wrong type for it.
    pub(super) needed: (&'static str, Value),
    /// A field that may be null, and a value for it.
    pub(super) nullable: Option<(&'static str, Value)>,
    /// A field that takes any text.
    pub(super) text: &'static str,
}

/// A project with a record of each kind, those that refer to others after them.
pub(super) async fn records(api: &Api) -> Vec<Record> {
    let project = project(api).await;
    let of = |what: &str| format!("{project}/{what}");
    let page = json!({
        "Identifier": "1.0", "Name": "Shop", "SubjectType": "Webpage", "Uri": "https://shop.test",
        "Variables": [{"Name": "user", "Content": "ada"}],
    });
    let lab = json!({"Name": "Lab", "TargetGroup": "pads", "Username": "ada", "Password": "x"});
    let case = json!({"Name": "Log in", "Description": "d", "Identifier": "login"});
    let plan = json!({"Instances": 2, "MinimumDurationInMin": 1.5, "TestType": "Stability"});
    let set = json!({"Name": "Nightly", "Description": "d"});

    let mut records = vec![
        Record {
            noun: "project",
            path: project.clone(),
            list: "/api/projects".to_owned(),
            body: json!({"Name": "Rocket", "Description": "Flies"}),
            needed: ("Name", json!(5)),
            nullable: Some(("ReportTemplateId", json!("template"))),
            text: "Description",
        },
        Record {
            noun: "subject",
            path: String::new(),
            list: of("subjects"),
            body: page,
            needed: ("Name", json!([])),
            nullable: Some(("SoftwareFileName", json!("shop.tar"))),
            text: "Identifier",
        },
        Record {
            noun: "environment",
            path: String::new(),
            list: of("environments"),
            body: lab,
            needed: ("Name", json!({})),
            nullable: Some(("ImageFileId", json!("image"))),
            text: "Username",
        },
        Record {
            noun: "test case",
            path: String::new(),
            list: of("testcases"),
            body: case,
            needed: ("Name", json!(true)),
            nullable: None,
            text: "Description",
        },
        Record {
            noun: "test set",
            path: String::new(),
            list: of("testsets"),
            body: set,
            needed: ("Name", json!(1.5)),
            nullable: Some(("Priority", json!("high"))),
            text: "Description",
        },
        Record {
            noun: "test plan",
            path: String::new(),
            list: String::new(),
            body: plan,
            needed: ("Instances", json!("two")),
            nullable: Some(("InputFileId", json!("file"))),
            text: "MonitoringMessage",
        },
    ];
    let mut case = String::new();
    for record in &mut records {
        if record.noun == "test plan" {
            record.list = format!("{case}/testplans");
        }
        if record.path.is_empty() {
            let made = api.post(&record.list, record.body.clone()).await.created();
            record.path = format!("{}/{}", record.list, id(&made));
        }
        if record.noun == "test case" {
            case.clone_from(&record.path);
        }
    }
    records
}

impl Record {
    pub(super) fn id(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

/// The record of that kind.
pub(super) fn of<'a>(records: &'a [Record], noun: &str) -> &'a Record {
    records.iter().find(|record| record.noun == noun).expect("a record of each kind")
}
