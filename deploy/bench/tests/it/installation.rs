//! An Assay in this process, and the records that requests read and change.

use std::{io::Write, path::Path, sync::LazyLock};

use assay::{Assay, Backends, Settings};
use assay_auth::{SealConfig, new_seal_key};
use assay_runtime::nats::NatsServers;
use assay_servers::{DataDir, Nats};
use assay_testkit::{Api, TestDatabase, test_dir};
use clap::Parser;
use secrecy::SecretString;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use uuid::Uuid;

use crate::client::Client;

const EMAIL: &str = "ada@example.org";
const PASSWORD: &str = "a long enough passphrase";

/// Number of test cases in the list.
const CASES: usize = 200;

/// Number of results in a request.
const RESULTS: usize = 2;

/// Maximum number of instances of a plan.
const INSTANCES: usize = 10_000;

/// Steps of each result, a JSON array.
static STEPS: LazyLock<String> = LazyLock::new(|| {
    let step = |nr| {
        json!({"StepNr": nr, "TestInput": format!("add item {nr}"), "Result": "Passed",
            "ActualResult": format!("the cart shows {nr} items"), "DurationInSec": 0.05})
    };
    (1..=20).map(step).collect::<Value>().to_string()
});

/// A running Assay on a thread of its own, and paths of records.
pub(crate) struct Installation {
    assay: Assay,
    token: String,
    pub(crate) paths: Paths,
    runtime: Runtime,
}

pub(crate) struct Paths {
    /// A test case with a plan.
    pub(crate) case: String,
    /// The test cases of its project.
    pub(crate) cases: String,
    /// The results of an execution.
    pub(crate) results: String,
}

impl Installation {
    /// Starts Assay, creates the records and stops NATS.
    pub(crate) fn start() -> Self {
        assay_runtime::install_crypto();
        LazyLock::force(&STEPS);
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build().unwrap();
        let (assay, token, paths) = runtime.block_on(async {
            let dir = test_dir().unwrap().join(Uuid::now_v7().to_string());
            let nats = Nats::start(&DataDir::lock(&dir).unwrap(), None).await.unwrap();
            let backends = Box::pin(backends(&nats)).await;
            let assay = Box::pin(Assay::start(&backends, settings(&dir))).await.unwrap();
            let anonymous = Api::new(format!("http://{}", assay.address));
            let login = json!({"Email": EMAIL, "Password": PASSWORD});
            let token = anonymous.post("/api/token/login", login).await.ok();
            let token = token["token"].as_str().unwrap().to_owned();
            let paths = Paths::create(&anonymous.with_token(token.as_str())).await;
            nats.stop().await.unwrap();
            (assay, token, paths)
        });
        Self { assay, token, paths, runtime }
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.assay.address, &self.token)
    }

    pub(crate) fn stop(self) {
        self.runtime.block_on(self.assay.stop()).unwrap();
    }
}

impl Paths {
    async fn create(api: &Api) -> Self {
        let project = api.post("/api/projects", json!({"Name": "Measured"})).await.created();
        let project = format!("/api/projects/{}", id(&project));
        let cases = format!("{project}/testcases");
        let entry = |n| json!({"Identifier": format!("case-{n}"), "Name": format!("Case {n}")});
        api.post(&format!("{cases}/import"), (1..CASES).map(entry).collect()).await.ok();
        let case =
            api.post(&cases, json!({"Identifier": "batch", "Name": "Batch"})).await.created();
        let id_of_case = id(&case);
        let case = format!("{cases}/{id_of_case}");
        let plans = format!("{case}/testplans");
        let plan = api.post(&plans, json!({"Instances": INSTANCES})).await.created();
        let ready = json!({"Status": "ReadyForExecution"});
        api.put(&format!("{plans}/{}", id(&plan)), ready).await.ok();
        let set = api.post(&format!("{project}/testsets"), json!({"Name": "Set"})).await.created();
        let set = format!("{project}/testsets/{}", id(&set));
        api.post(&format!("{set}/testcases"), json!({"Id": id_of_case})).await.ok();
        let execution = api.post(&format!("{set}/executions"), json!({"Mode": "External"})).await;
        let results = format!("{project}/executions/{}/results", id(&execution.created()));
        Self { case, cases, results }
    }
}

fn id(record: &Value) -> String {
    record["Id"].as_str().expect("an Id").to_owned()
}

async fn backends(nats: &Nats) -> Backends {
    let database = async |schema, migrations| -> SecretString {
        TestDatabase::create(schema, &migrations).await.unwrap().url.into()
    };
    let (identity, catalog, execution, notification) = tokio::join!(
        database("identity", assay_identity::migrations()),
        database("catalog", assay_catalog::migrations()),
        database("execution", assay_execution::migrations()),
        database("notification", assay_notification::migrations()),
    );
    let nats = NatsServers::at(nats.url().into());
    let seal = SealConfig { encryption_keys: new_seal_key("1").unwrap() };
    Backends { identity, catalog, execution, notification, nats, seal }
}

/// Returns the settings of an installation without rate limits.
fn settings(dir: &Path) -> Settings {
    #[derive(Parser)]
    struct Options {
        #[command(flatten)]
        settings: Settings,
    }
    let in_dir = |option: &str, name: &str| format!("--{option}={}", dir.join(name).display());
    let options = [
        "assay",
        "--http-listen=127.0.0.1:0",
        "--public-url=https://assay.test",
        &format!("--admin-email={EMAIL}"),
        &format!("--admin-password={PASSWORD}"),
        &in_dir("mail-dir", "mail"),
        &in_dir("artifacts", "artifacts"),
        "--requests-per-address=0",
        "--requests-per-customer=0",
    ];
    Options::parse_from(options).settings
}

/// Writes a new test case.
pub(crate) fn new_case(number: usize, body: &mut Vec<u8>) {
    write!(body, r#"{{"Identifier":"made-{number}","Name":"Made","Description":""}}"#).unwrap();
}

/// Writes a change of a test case.
pub(crate) fn change(number: usize, body: &mut Vec<u8>) {
    write!(body, r#"{{"Name":"Changed {number}"}}"#).unwrap();
}

/// Writes results that no other request has.
pub(crate) fn results(number: usize, body: &mut Vec<u8>) {
    for nr in 1..=RESULTS {
        let (nr, steps) = ((number * RESULTS + nr) % INSTANCES + 1, &*STEPS);
        writeln!(
            body,
            r#"{{"Identifier":"batch","InstanceNr":{nr},"Result":"Passed","DurationInSec":1.5,"Steps":{steps}}}"#
        )
        .unwrap();
    }
}
