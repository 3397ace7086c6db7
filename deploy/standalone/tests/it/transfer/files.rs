//! Projects that move with their files.

use assay_testkit::{Answer, Api};
use reqwest::{Method, Url};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinSet};

use super::Mover;
use crate::{customer::Customer, files::breaking::break_connections, world::id};

async fn upload(api: &Api, project: &str, name: &str, contents: &'static str) -> Value {
    let request = api.request(Method::POST, &format!("{project}/files"));
    Answer::of(request.header("X-File-Name", name).body(contents)).await.created()
}

/// Creates the project "shop", whose records refer to files.
async fn create(api: &Api) {
    let project = api.post("/api/projects", json!({"Name": "shop"})).await.created();
    let at = format!("/api/projects/{}", id(&project));
    let template = upload(api, &at, "template.json", "{}").await;
    let software = upload(api, &at, "Pr%C3%BCfplan%202.msi", "MSI").await;
    let image = upload(api, &at, "linux.img", "image").await;
    // Equal contents under two names, and an empty file.
    let input = upload(api, &at, "input.csv", "MSI").await;
    upload(api, &at, "empty", "").await;
    api.put(&at, json!({"ReportTemplateId": template["Id"]})).await.ok();
    let subject = json!({
        "Name": "Web shop", "Identifier": "1.0", "SubjectType": "RequiresInstallation",
        "SoftwareFileId": software["Id"], "InstallationFileId": "share/install.sh",
        "InstructionFileId": software["Id"],
    });
    api.post(&format!("{at}/subjects"), subject).await.created();
    let environment = json!({"Name": "Linux", "ImageFileId": image["Id"]});
    api.post(&format!("{at}/environments"), environment).await.created();
    let case = json!({"Identifier": "PAY", "Name": "Pay by card", "Description": ""});
    let case = api.post(&format!("{at}/testcases"), case).await.created();
    let plan = json!({"InputFileId": input["Id"], "SupportingFilesId": "share/7",
        "AutomatedTestContainerId": input["Id"]});
    let plans = format!("{at}/testcases/{}/testplans", id(&case));
    let plan = api.post(&plans, plan).await.created();
    let malformed = json!({"AutomatedTestContainerId": "registry.example.org/shop@latest"});
    api.put(&format!("{plans}/{}", id(&plan)), malformed).await.is_problem(422, "invalid");
}

/// Returns the only record of a list.
async fn only(api: &Api, list: &str) -> Value {
    let listed = api.get(list).await.ok();
    assert_eq!(listed.as_array().unwrap().len(), 1, "{list}: {listed:#}");
    api.get(&format!("{list}/{}", id(&listed[0]))).await.ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_moves_with_its_files_and_repeating_stores_none_twice() {
    let (from, to) = (Customer::new().await, Customer::new().await);
    create(&from.api).await;
    let (leaving, arriving) = (Mover::new(&from).await, Mover::new(&to).await);
    leaving.assay("export --project shop --to out").await;
    let out = leaving.folder.join("out");
    let import = format!("import --from {} --work .", out.display());
    let output = arriving.assay(&import).await;
    assert!(output.contains("5 storedfiles"), "{output}");

    let api = &to.api;
    let projects = api.get("/api/projects").await.ok();
    let at = format!("/api/projects/{}", id(&projects[0]));
    let named = async |reference: &Value| {
        let file = api.get(&format!("{at}/files/{}", reference.as_str().unwrap())).await.ok();
        let contents = api.get(file["Url"].as_str().unwrap()).await.expect(200).body.clone();
        let name = file["Name"].as_str().unwrap().to_owned();
        (name, String::from_utf8(contents).unwrap())
    };
    let file = |name: &str, contents: &str| (name.to_owned(), contents.to_owned());
    let project = api.get(&at).await.ok();
    assert_eq!(named(&project["ReportTemplateId"]).await, file("template.json", "{}"));
    let subject = only(api, &format!("{at}/subjects")).await;
    assert_eq!(named(&subject["SoftwareFileId"]).await, file("Prüfplan 2.msi", "MSI"));
    assert_eq!(subject["SoftwareFileId"], subject["InstructionFileId"]);
    assert_eq!(subject["InstallationFileId"], "share/install.sh");
    let environment = only(api, &format!("{at}/environments")).await;
    assert_eq!(named(&environment["ImageFileId"]).await, file("linux.img", "image"));
    assert_eq!(environment["FileProjectId"], project["Id"]);
    let case = only(api, &format!("{at}/testcases")).await;
    let plans = format!("{at}/testcases/{}/testplans", id(&case));
    let plan = api.get(&format!("{plans}/{}", id(&case["TestPlanList"][0]))).await.ok();
    assert_eq!(named(&plan["InputFileId"]).await, file("input.csv", "MSI"));
    assert_eq!(plan["AutomatedTestContainerId"], plan["InputFileId"]);
    assert_eq!(plan["SupportingFilesId"], "share/7");
    // The references count, as those of any client.
    let software = format!("{at}/files/{}", subject["SoftwareFileId"].as_str().unwrap());
    api.delete(&software).await.is_problem(409, "file_in_use");

    let before = api.get(&format!("{at}/files")).await.ok();
    assert_eq!(before.as_array().unwrap().len(), 5);
    arriving.assay(&import).await;
    assert_eq!(api.get(&format!("{at}/files")).await.ok(), before);

    // Without the files, their ids are marked.
    leaving.assay("export --project shop --no-files --to without").await;
    let without = leaving.folder.join("without");
    arriving.assay(&format!("import --from {} --project bare", without.display())).await;
    let projects = api.get("/api/projects").await.ok();
    let bare =
        projects.as_array().unwrap().iter().find(|project| project["Name"] == "bare").unwrap();
    let subject = only(api, &format!("/api/projects/{}/subjects", id(bare))).await;
    assert!(subject["SoftwareFileId"].as_str().unwrap().starts_with("not moved: "), "{subject:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_imported_over_connections_that_break() {
    const SIZE: usize = 8 << 20;
    let (from, to) = (Customer::new().await, Customer::new().await);
    let project = from.api.post("/api/projects", json!({"Name": "shop"})).await.created();
    let files = format!("/api/projects/{}/files", id(&project));
    // No part of it is like another one.
    let contents: Vec<u8> = (0_u32..).flat_map(u32::to_be_bytes).take(SIZE).collect();
    let request = from.api.request(Method::POST, &files).header("X-File-Name", "pad.img");
    let file = Answer::of(request.body(contents)).await.created();
    let (leaving, mut arriving) = (Mover::new(&from).await, Mover::new(&to).await);
    leaving.assay("export --project shop --to out").await;

    let url = Url::parse(&to.url()).unwrap();
    let gateway = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    arriving.url = format!("http://{}", listener.local_addr().unwrap());
    let (mut proxy, broken) = (JoinSet::new(), break_connections(4, SIZE / 6));
    proxy.spawn(broken.clone().serve(listener, gateway));
    let out = leaving.folder.join("out");
    let output = arriving.assay(&format!("import --from {} --work .", out.display())).await;
    assert!(output.contains("broke off; will continue it"), "{output}");

    assert_eq!(broken.left(), 0, "all four connections have broken");
    let projects = to.api.get("/api/projects").await.ok();
    let arrived = only(&to.api, &format!("/api/projects/{}/files", id(&projects[0]))).await;
    assert_eq!((&arrived["Sha256"], &arrived["Name"]), (&file["Sha256"], &json!("pad.img")));
    assert_eq!((&arrived["Size"], &arrived["ContentType"]), (&json!(SIZE), &file["ContentType"]));
}
