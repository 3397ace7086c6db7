//! Clients that are generated from the OpenAPI document: they compile, and complete a session.

use std::path::{Path, PathBuf};

use reqwest::Method;
use tokio::process::Command;

use super::{at, dir, node, text_of};
use crate::{customer::Customer, people::password_of};

/// The sessions, and the versions of the generators that are tested.
const SESSIONS: &str = "deploy/clients";

/// The archive with a report.
const ARCHIVE: &str = "services/kit/formats/tests/archives/playwright.zip";

/// Options of the compiler of TypeScript.
const COMPILER: &str = "--strict --target es2022 --module nodenext --moduleResolution nodenext \
    --lib es2022,dom,dom.iterable --types node --skipDefaultLibCheck --outDir compiled";

/// Copies the sessions in a language to a new directory, and generates a client there.
async fn generated(client: &str, language: &str) -> PathBuf {
    let dir = dir();
    for file in std::fs::read_dir(at(SESSIONS).join(language)).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), dir.join(file.file_name())).unwrap();
    }
    let mut generate = Command::new(at(SESSIONS).join("generate"));
    let generate = generate.arg(client).arg(at("docs/openapi.json")).arg(&dir).env("HOME", &dir);
    let output = generate.output().await.unwrap();
    assert!(output.status.success(), "run deploy/local/install test: {}", text_of(&output));
    dir
}

/// Compiles a session in TypeScript.
async fn compile(client: &str, dir: &Path) {
    let tools = at("target/tools/clients/node_modules");
    std::os::unix::fs::symlink(&tools, dir.join("node_modules")).unwrap();
    let mut compiler = node(dir);
    compiler.arg(tools.join("typescript/bin/tsc"));
    compiler.args(COMPILER.split(' ')).arg(format!("{client}.ts"));
    let output = compiler.output().await.unwrap();
    assert!(output.status.success(), "{}", text_of(&output));
}

/// Lets a client complete its session, and compares what it has read back.
async fn run_session(mut session: Command, dir: &Path) {
    let customer = Customer::new().await;
    let tester = customer.create_member("grace", "Login, Read, Write, Execute").await;
    let bytes: Vec<u8> = (0..=255).cycle().take(10_000).collect();
    std::fs::write(dir.join("all.bin"), &bytes).unwrap();
    std::fs::copy(at("docs/first-session/junit.xml"), dir.join("junit.xml")).unwrap();
    std::fs::copy(at(ARCHIVE), dir.join("report.zip")).unwrap();

    let session = session.args([&customer.url(), &tester.email]).arg(dir).current_dir(dir);
    let session = session.env("ASSAY_PASSWORD", password_of(&tester.email)).kill_on_drop(true);
    let output = session.output().await.unwrap();
    let text = text_of(&output);
    assert!(output.status.success(), "{text}");

    for name in ["all.bin", "junit.xml", "report.zip"] {
        let [sent, read] =
            [dir.to_owned(), dir.join("read")].map(|at| std::fs::read(at.join(name)));
        assert!(sent.unwrap() == read.unwrap(), "{name} has changed");
    }
    let execution = text.split(' ').next().unwrap();
    let export = format!("/api/executions/{execution}/junit");
    let export = tester.api.request(Method::GET, &export).send().await.unwrap();
    let export = export.error_for_status().unwrap().bytes().await.unwrap();
    assert!(
        export == std::fs::read(dir.join("read/export.xml")).unwrap(),
        "the export has changed"
    );
}

async fn check_typescript(client: &str) {
    let dir = generated(client, "typescript").await;
    compile(client, &dir).await;
    let mut session = node(&dir);
    session.arg(format!("compiled/{client}.js"));
    run_session(session, &dir).await;
}

async fn check_python(client: &str, session: &str) {
    let dir = generated(client, "python").await;
    let mut python = Command::new(at("target/tools/clients/python/bin").join("python"));
    python.arg(session);
    run_session(python, &dir).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn openapi_typescript_makes_a_working_client() {
    check_typescript("openapi-typescript").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hey_api_makes_a_working_client() {
    check_typescript("hey-api").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn orval_makes_a_working_client() {
    check_typescript("orval").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn swagger_typescript_api_makes_a_working_client() {
    check_typescript("swagger-typescript-api").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn openapi_generator_makes_a_working_client_for_typescript() {
    check_typescript("openapi-generator").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn openapi_generator_makes_a_working_client_for_python() {
    check_python("openapi-generator-python", "openapi_generator.py").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn openapi_python_client_makes_a_working_client() {
    check_python("openapi-python-client", "openapi_python_client.py").await;
}
