//! One record of each kind, with data that tests need.

use assay_testkit::{Api, eventually};
use serde_json::{Value, json};

use crate::{
    matrix::operation::operations,
    world::{create_project, id, in_days},
};

/// A record of a test.
pub(super) struct Record {
    pub(super) noun: &'static str,
    /// Its path, including `/api`.
    pub(super) path: String,
    /// The path of its list.
    pub(super) list: String,
    /// The body that created it.
    pub(super) body: Value,
    /// A required field, and a value of the wrong type for it.
    pub(super) required: (&'static str, Value),
    /// A nullable field, and a value for it.
    pub(super) nullable: Option<(&'static str, Value)>,
    /// A field with arbitrary text.
    pub(super) text: &'static str,
}

fn monitor(list: String) -> Record {
    Record {
        noun: "monitor",
        path: String::new(),
        list,
        body: json!({"Name": "Flaky", "Measure": "Recoveries", "Threshold": 3, "Action": "Mute"}),
        required: ("Threshold", json!("three")),
        nullable: None,
        text: "Name",
    }
}

fn pool(list: String) -> Record {
    Record {
        noun: "pool",
        path: String::new(),
        list,
        body: json!({"Name": "accounts", "Values": [{"Contents": [{"Content": "ada"}]}]}),
        required: ("Values", json!(7)),
        nullable: None,
        text: "Name",
    }
}

/// Creates a project with a record of each kind, each after the records that it refers to. Panics if
/// a kind is missing, so that the tests cover new ones.
pub(super) async fn records(api: &Api) -> Vec<Record> {
    let project = create_project(api).await;
    let of = |what: &str| format!("{project}/{what}");
    let page = json!({
        "Identifier": "1.0", "Name": "Shop", "SubjectType": "Webpage", "Uri": "https://shop.test",
        "Variables": [{"Name": "user", "Content": "ada"}],
    });
    let lab = json!({"Name": "Lab", "TargetGroup": "pads", "Username": "ada", "Password": "x"});
    let case = json!({"Name": "Log in", "Description": "d", "Identifier": "login"});
    let plan = json!({"Instances": 2, "MinimumDurationInMin": 1.5, "TestType": "Stability"});
    let set = json!({"Name": "Nightly", "Description": "d"});

    let known = json!({
        "Fingerprint": cause(api, &project).await, "EveryCase": true, "MutedUntil": in_days(30),
    });

    let mut records = vec![
        Record {
            noun: "project",
            path: project.clone(),
            list: "/api/projects".to_owned(),
            body: json!({"Name": "Rocket", "Description": "Flies"}),
            required: ("Name", json!(5)),
            nullable: Some(("ReportTemplateId", json!("template"))),
            text: "Description",
        },
        Record {
            noun: "subject",
            path: String::new(),
            list: of("subjects"),
            body: page,
            required: ("Name", json!([])),
            nullable: Some(("SoftwareFileName", json!("shop.tar"))),
            text: "Identifier",
        },
        Record {
            noun: "environment",
            path: String::new(),
            list: of("environments"),
            body: lab,
            required: ("Name", json!({})),
            nullable: Some(("ImageFileId", json!("image"))),
            text: "Username",
        },
        Record {
            noun: "test case",
            path: String::new(),
            list: of("testcases"),
            body: case,
            required: ("Name", json!(true)),
            nullable: None,
            text: "Description",
        },
        Record {
            noun: "test set",
            path: String::new(),
            list: of("testsets"),
            body: set,
            required: ("Name", json!(1.5)),
            nullable: Some(("Priority", json!("high"))),
            text: "Description",
        },
        Record {
            noun: "known failure",
            path: String::new(),
            list: of("knownfailures"),
            body: known,
            required: ("MutedUntil", json!(5)),
            nullable: None,
            text: "Comment",
        },
        monitor(of("monitors")),
        pool(of("pools")),
        Record {
            noun: "test plan",
            path: String::new(),
            list: String::new(),
            body: plan,
            required: ("Instances", json!("two")),
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
    require_all(&records);
    records
}

/// Fails unless there is a record of each kind that belongs to a project and can be changed.
fn require_all(records: &[Record]) {
    let operations = operations();
    for operation in &operations {
        let Some(noun) = operation.name.strip_prefix("create_") else { continue };
        let noun = noun.replace('_', " ");
        let update = operation.name.replace("create_", "update_");
        let belongs_here = operation.path_parameters().first() == Some(&"projectId")
            && operations.iter().any(|operation| operation.name == update);
        let is_known = records.iter().any(|record| record.noun == noun);
        assert!(is_known || !belongs_here, "these tests need a {noun}: add it to records.rs");
    }
}

/// Reports a failure in a project, and returns the fingerprint of its cause.
async fn cause(api: &Api, project: &str) -> String {
    let open = json!({"Project": project.rsplit('/').next(), "TestSet": "Failing"});
    let open = api.post("/api/executions", open).await.created();
    let execution = format!("{project}/executions/{}", id(&open));
    let failed = json!([{
        "Identifier": "fails", "Result": "Failed",
        "Steps": [{"StepNr": 1, "Result": "Failed", "ActualResult": "no answer"}],
    }]);
    api.post(&format!("{execution}/results"), failed).await.ok();
    eventually("the result in the project", async || {
        (api.get(project).await.ok()["OverallStatus"] == "InReview").then_some(())
    })
    .await;
    let causes = api.get(&format!("{execution}/failures")).await.ok();
    causes[0]["Fingerprint"].as_str().unwrap().to_owned()
}

impl Record {
    pub(super) fn id(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

/// Returns the record of a kind.
pub(super) fn of<'a>(records: &'a [Record], noun: &str) -> &'a Record {
    records.iter().find(|record| record.noun == noun).expect("a record of each kind")
}
