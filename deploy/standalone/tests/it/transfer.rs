//! Projects that move: `assay export` and `assay import`.

mod files;
mod fixture;
mod foreign;
mod interrupted;
mod past;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Output, Stdio},
};

use assay_testkit::test_dir;
use serde_json::{Value, json};
use tokio::process::{Child, Command};
use uuid::Uuid;

use crate::customer::Customer;

/// A place to run the commands in, with a token of a customer.
pub(crate) struct Mover {
    pub(crate) folder: PathBuf,
    url: String,
    token: String,
}

impl Mover {
    pub(crate) async fn new(customer: &Customer) -> Self {
        let permissions = "Read, Write, Execute, Accept, Reject, AccessSecrets";
        let token = json!({"Name": "Move", "UsagePermission": permissions});
        let token = customer.api.post("/api/users/current/tokens", token).await.created();
        let folder = test_dir().unwrap().join(Uuid::now_v7().to_string());
        fs::create_dir_all(&folder).unwrap();
        let token = token["Secret"].as_str().unwrap().to_owned();
        Self { folder, url: customer.url(), token }
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_assay"));
        command
            .args(arguments.split(' '))
            .current_dir(&self.folder)
            .env_clear()
            .env("ASSAY_URL", &self.url)
            .env("ASSAY_TOKEN", &self.token)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// Runs `assay` with arguments that are separated by spaces, which succeeds. Returns the output.
    pub(crate) async fn assay(&self, arguments: &str) -> String {
        let (is_success, output) = self.try_assay(arguments).await;
        assert!(is_success, "{output}");
        output
    }

    pub(crate) async fn try_assay(&self, arguments: &str) -> (bool, String) {
        let Output { status, stdout, stderr } = self.command(arguments).output().await.unwrap();
        (status.success(), String::from_utf8([stdout, stderr].concat()).unwrap())
    }

    /// Starts `assay`, and does not wait for its end.
    fn start(&self, arguments: &str) -> Child {
        self.command(arguments).spawn().unwrap()
    }

    pub(crate) fn write(&self, name: &str, contents: &str) {
        fs::write(self.folder.join(name), contents).unwrap();
    }
}

impl Drop for Mover {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The fields that differ after a move, as `docs/switching.md` lists them.
const DIFFERENT: [&str; 14] = [
    "Change",
    "CreatedAt",
    "CreatedBy",
    "DataVersion",
    "GraceInSec",
    "IsOpen",
    "LastSeen",
    "Reporters",
    "RequestUser",
    "StopOnFailure",
    "Url",
    "PassRate",
    "OverallResult",
    "OverallStatus",
];

/// The fields of the catalog that follow from events about executions, which may be on their way.
const DERIVED: [&str; 10] = [
    "ExecutionStatistics",
    "LastExecuted",
    "LastExecutionStatistic",
    "LastReportStatus",
    "LastResult",
    "LastRunDuration",
    "LastSwIdentifier",
    "LastSwName",
    "ReportsStatistic",
    "TestReports",
];

/// Returns a record without what differs: fields with ids, and those above.
fn comparable(record: &Value) -> Value {
    match record {
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(name, _)| {
                let name = name.as_str();
                !name.ends_with("Id") && !DIFFERENT.contains(&name) && !DERIVED.contains(&name)
            });
            fields.map(|(name, value)| (name.clone(), comparable(value))).collect()
        }
        Value::Array(elements) => elements.iter().map(comparable).collect(),
        other => other.clone(),
    }
}

/// Returns the comparable records of all files of an export, those of executions by their number.
fn records(export: &Path) -> BTreeMap<String, Vec<Value>> {
    let lines = |path: &Path| -> Vec<Value> {
        let text = fs::read_to_string(path).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let mut records = BTreeMap::new();
    for noun in [
        "project",
        "subjects",
        "environments",
        "testcases",
        "testsets",
        "executions",
        "knownfailures",
    ] {
        let read = lines(&export.join(format!("{noun}.ndjson")));
        records.insert(noun.to_owned(), read.iter().map(comparable).collect());
    }
    for (number, execution) in lines(&export.join("executions.ndjson")).iter().enumerate() {
        let folder = export.join("executions").join(execution["Id"].as_str().unwrap());
        for file in ["results", "reviews", "files"] {
            let read = lines(&folder.join(format!("{file}.ndjson")));
            let read: Vec<_> = read.iter().map(comparable).collect();
            records.insert(format!("{file} of {number}"), read);
        }
        for file in fs::read_dir(folder.join("files")).into_iter().flatten() {
            let path = file.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let contents = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            records.insert(format!("{name} of {number}"), vec![contents.into()]);
        }
    }
    records
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_is_the_same_after_a_move_to_another_customer() {
    let (from, to) = (Customer::new().await, Customer::new().await);
    fixture::create(&from.api).await;
    let (leaving, arriving) = (Mover::new(&from).await, Mover::new(&to).await);

    leaving.assay("export --project shop --to out").await;
    let out = leaving.folder.join("out");
    let import = format!("import --from {} --work .", out.display());
    let output = arriving.assay(&import).await;
    assert!(output.contains("3 executions"), "{output}");
    arriving.assay("export --project shop --to back").await;

    let (before, after) = (records(&out), records(&arriving.folder.join("back")));
    assert_eq!(
        before.keys().collect::<Vec<_>>(),
        after.keys().collect::<Vec<_>>(),
        "both exports have the same files"
    );
    for (file, records) in &before {
        assert_eq!(records, &after[file], "{file}");
    }
    assert_eq!(before["testcases"].len(), 4);
    assert_eq!(before["results of 1"].len(), 5);

    // Importing it again, also without the list of finished executions, changes nothing.
    for file in fs::read_dir(&arriving.folder).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "txt") {
            fs::remove_file(path).unwrap();
        }
    }
    arriving.assay(&import).await;
    arriving.assay("export --project shop --to again").await;
    let again = records(&arriving.folder.join("again"));
    for (file, records) in &after {
        assert_eq!(records, &again[file], "{file}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_that_is_not_complete_or_was_changed_is_not_imported() {
    let customer = Customer::new().await;
    fixture::create(&customer.api).await;
    let mover = Mover::new(&customer).await;
    let (is_success, output) = mover.try_assay("export --project none --to out").await;
    assert!(!is_success && output.contains("no such project: none"), "{output}");
    mover.assay("export --project shop --to out").await;
    let (is_success, output) = mover.try_assay("export --project shop --to out").await;
    assert!(!is_success && output.contains("has a complete export"), "{output}");

    let manifest = mover.folder.join("out/manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::remove_file(&manifest).unwrap();
    let (is_success, output) = mover.try_assay("import --from out --project copy").await;
    assert!(!is_success && output.contains("the export is not complete"), "{output}");
    fs::write(&manifest, text).unwrap();
    fs::write(mover.folder.join("out/testcases.ndjson"), "{}\n").unwrap();
    let (is_success, output) = mover.try_assay("import --from out --project copy").await;
    assert!(!is_success && output.contains("testcases.ndjson differs"), "{output}");

    let projects = customer.api.get("/api/projects").await.ok();
    assert_eq!(projects.as_array().unwrap().len(), 1, "nothing was sent");
}
