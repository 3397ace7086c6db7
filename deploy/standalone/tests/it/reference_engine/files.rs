//! Files of tests: engines download those of their leases, and commands read them.

use assay_testkit::{Answer, Api, eventually};
use reqwest::Method;
use serde_json::{Value, json};

use super::{Engine, read, start_execution, test_directory, wait_for_end};
use crate::{
    customer::Customer,
    world::{create_project, id},
};

async fn upload(api: &Api, project: &str, name: &str, file: &'static str) -> Value {
    let request = api.request(Method::POST, &format!("{project}/files"));
    Answer::of(request.header("X-File-Name", name).body(file)).await.created()
}

/// A set with a test whose plan has two files of the same name and one of another system, and whose subject
/// has a file.
pub(super) struct Files {
    pub(super) project: String,
    pub(super) set: String,
    software: Value,
    pub(super) input: Value,
    supporting: Value,
}

impl Files {
    pub(super) async fn create(api: &Api) -> Self {
        let project = create_project(api).await;
        let software = upload(api, &project, "web shop.msi", "MSI").await;
        let input = upload(api, &project, "input.csv", "a,b").await;
        let supporting = upload(api, &project, "input.csv", "c,d").await;
        let subject = json!({"Name": "Web shop", "Identifier": "1.0",
            "SubjectType": "RequiresInstallation", "SoftwareFileId": software["Id"],
            "InstallationFileId": "share/install.sh", "InstructionFileId": "share/readme"});
        let subject = api.post(&format!("{project}/subjects"), subject).await.created();
        let set =
            api.post(&format!("{project}/testsets"), json!({"Name": "Smoke"})).await.created();
        let set = format!("{project}/testsets/{}", id(&set));
        api.put(&set, json!({"SelectedSubjectId": subject["Id"]})).await.ok();
        let case = json!({"Name": "A test", "Description": "", "Identifier": "A-1"});
        let case = api.post(&format!("{project}/testcases"), case).await.created();
        let plans = format!("{project}/testcases/{}/testplans", id(&case));
        let plan = json!({"Instances": 2, "InputFileId": input["Id"],
            "SupportingFilesId": supporting["Id"], "AutomationSupportingFilesId": "share/7",
            "AutomatedTestContainerId": input["Id"]});
        let plan = api.post(&plans, plan).await.created();
        let ready = json!({"Status": "ReadyForExecution"});
        api.put(&format!("{plans}/{}", id(&plan)), ready).await.ok();
        api.put(&format!("{set}/testcases"), json!({"Id": case["Id"]})).await.ok();
        Self { project, set, software, input, supporting }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_reads_the_files_of_its_plan_and_its_subject() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let files = Files::create(api).await;
    let dir = test_directory();
    let script = format!(
        "cat \"$ASSAY_SOFTWARE_FILE\" \"$ASSAY_INPUT_FILE\" \"$ASSAY_SUPPORTING_FILES\" >>{dir}/read; \
         [ \"$ASSAY_AUTOMATED_TEST_CONTAINER\" = \"$ASSAY_INPUT_FILE\" ] && \
         ls \"$ASSAY_FILES\" >{dir}/names; echo \"$ASSAY_FILES\" >{dir}/folder; \
         [ -z \"$ASSAY_AUTOMATION_SUPPORTING_FILES$ASSAY_IMAGE_FILE\" ]",
        dir = dir.display()
    );
    let engine = Engine::start(api, customer.url(), &["sh", "-c", &script]).await;

    let execution = start_execution(api, &files.project, &files.set).await;
    let done = wait_for_end(api, &execution).await;

    assert_eq!(done["Result"], "Passed", "{done:#}");
    assert_eq!(read(&dir, "read"), "MSIa,bc,dMSIa,bc,d", "both instances have the files");
    // One of the files with the same name has its id as its name.
    let names = read(&dir, "names");
    let mut names: Vec<_> = names.lines().collect();
    names.sort_unstable();
    let second =
        if id(&files.input) < id(&files.supporting) { &files.supporting } else { &files.input };
    assert_eq!(names, [id(second), "input.csv", "web shop.msi"]);
    // A file of the next test comes from the cache, and the folder of the last one is gone.
    let first = read(&dir, "folder");
    let execution = start_execution(api, &files.project, &files.set).await;
    assert_eq!(wait_for_end(api, &execution).await["Result"], "Passed");
    assert_ne!(read(&dir, "folder"), first);
    engine.stop().await;
    assert!(!std::path::Path::new(first.trim()).exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_downloads_the_files_of_its_lease_and_lists_none() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let files = Files::create(api).await;
    let other = upload(api, &files.project, "secret.txt", "secret").await;
    start_execution(api, &files.project, &files.set).await;
    let member = customer.create_member("engine", "Login, Automation").await;
    let token = json!({"Name": "Engine", "UsagePermission": "Automation"});
    let token = member.api.post("/api/users/current/tokens", token).await.created();
    let engine = customer.anonymous().with_token(token["Secret"].as_str().unwrap());
    let leased = engine.post("/api/automation/leases", json!({})).await.ok();
    let lease = format!("/api/automation/leases/{}", id(&leased[0]));

    let listed = leased[0]["Files"].as_array().unwrap();
    assert_eq!(listed.len(), 3, "{listed:?}");
    for file in [&files.software, &files.input, &files.supporting] {
        let found = listed.iter().find(|listed| listed["Id"] == file["Id"]).unwrap();
        for field in ["Name", "Size", "Sha256"] {
            assert_eq!(found[field], file[field]);
        }
        assert_eq!(found["Url"], format!("{lease}/files/{}", id(file)));
    }
    let at = format!("{lease}/files/{}", id(&files.input));
    let whole = engine.get(&at).await;
    assert_eq!(whole.expect(200).body, b"a,b");
    assert_eq!(
        whole.headers["content-disposition"].to_str().unwrap().split(';').next(),
        Some("attachment")
    );
    let tag = whole.headers["etag"].clone();
    let rest = engine.request(Method::GET, &at).header("Range", "bytes=2-").header("If-Range", tag);
    assert_eq!(Answer::of(rest).await.expect(206).body, b"b");
    let head = Answer::of(engine.request(Method::HEAD, &at)).await;
    assert_eq!(
        (head.expect(200).headers["content-length"].to_str().unwrap(), head.body.len()),
        ("3", 0)
    );

    // Neither other files nor the list.
    engine.get(&format!("{lease}/files/{}", id(&other))).await.is_problem(404, "not_found");
    engine.get(&format!("{lease}/files/x")).await.is_problem(404, "not_found");
    for path in
        [format!("{}/files", files.project), files.input["Url"].as_str().unwrap().to_owned()]
    {
        engine.get(&path).await.is_problem(403, "forbidden");
    }
    let reader = customer.create_member("reader", "Login, Read, Write, Execute").await;
    reader.api.get(&at).await.is_problem(403, "forbidden");
    let stranger = Customer::new().await;
    stranger.api.get(&at).await.is_problem(404, "not_found");
    engine.post(&format!("{lease}/complete"), json!({})).await.expect(204);
    engine.get(&at).await.is_problem(409, "lease_ended");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_is_restricted_to_a_project_runs_only_its_tests() {
    let customer = Customer::new().await;
    let api = &customer.api;
    let [mine, other] = [Files::create(api).await, Files::create(api).await];
    let waiting = start_execution(api, &other.project, &other.set).await;
    let project = mine.project.rsplit('/').next().unwrap().to_owned();
    let restrict =
        |config: &mut assay_engine::Config| config.projects = vec![project.parse().unwrap()];
    let engine = Engine::start_with(api, customer.url(), &["true"], restrict).await;

    let execution = start_execution(api, &mine.project, &mine.set).await;
    assert_eq!(wait_for_end(api, &execution).await["Result"], "Passed");

    assert_eq!(api.get(&waiting).await.ok()["Status"], "Queued");
    let listed = eventually("the engine", || async {
        let engines = api.get("/api/engines").await.ok();
        Some(engines[0].clone()).filter(Value::is_object)
    });
    assert_eq!(listed.await["ProjectIds"], json!([project]));
    let length = async |project: &str| {
        api.get(&format!("/api/queues/length?projectIds={project}")).await.ok()["Queued"].clone()
    };
    assert_eq!((length(&project).await, length("").await), (json!(0), json!(1)));
    engine.stop().await;
}
