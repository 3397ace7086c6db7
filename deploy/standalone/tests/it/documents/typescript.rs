//! The TypeScript client with types generated from the OpenAPI document.

use std::{
    path::{Path, PathBuf},
    process::Output,
};

use serde_json::Value;

use super::{at, dir, node, text_of, tool};
use crate::world::{ADMIN, PASSWORD, World, id};

const EXAMPLE: &str = "docs/clients/typescript";

/// Copies the example to a new directory, changes it and generates the types.
async fn example(change: impl Fn(String) -> String) -> PathBuf {
    let dir = dir();
    for file in ["package.json", "tsconfig.json"] {
        std::fs::copy(at(EXAMPLE).join(file), dir.join(file)).unwrap();
    }
    let session = std::fs::read_to_string(at(EXAMPLE).join("session.ts")).unwrap();
    std::fs::write(dir.join("session.ts"), change(session)).unwrap();
    std::os::unix::fs::symlink(at("target/tools/node/node_modules"), dir.join("node_modules"))
        .unwrap();
    let mut generator = tool("openapi-typescript/bin/cli.js", &dir);
    generator.arg(at("docs/openapi.json")).args(["--output", "assay.d.ts"]);
    let made = generator.output().await.unwrap();
    assert!(made.status.success(), "{}", text_of(&made));
    dir
}

/// The example must use the tested versions.
#[test]
fn the_example_uses_the_tested_versions() {
    let [example, tools] = [EXAMPLE, "deploy/local/tools"].map(|dir| {
        let text = std::fs::read_to_string(at(dir).join("package.json")).unwrap();
        serde_json::from_str::<Value>(&text).unwrap()
    });
    for kind in ["dependencies", "devDependencies"] {
        for (name, version) in example[kind].as_object().unwrap() {
            assert_eq!(*version, tools["dependencies"][name], "{name}");
        }
    }
}

async fn compile(dir: &Path) -> Output {
    tool("typescript/bin/tsc", dir).output().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_generated_client_completes_a_session() {
    let dir = example(|session| session).await;
    let compiled = compile(&dir).await;
    assert!(compiled.status.success(), "{}", text_of(&compiled));

    let world = World::start().await;
    let mut session = node(&dir);
    session.arg("session.ts").args([&world.url(), ADMIN]).arg(at("docs/first-session/junit.xml"));
    let session = session.env("ASSAY_PASSWORD", PASSWORD).output().await.unwrap();
    let output = text_of(&session);
    assert!(session.status.success(), "{output}");
    for what in ["1 result, 1 passed", "Pay by card: Passed, Accepted", "uploaded", "1 Failed: "] {
        assert!(output.contains(what), "{output}");
    }
    let projects = world.api.get("/api/projects").await.ok();
    let executions = format!("/api/projects/{}/executions", id(&projects[0]));
    let executions = world.api.get(&executions).await.ok();
    assert_eq!(executions.as_array().unwrap().len(), 2, "{output}");
    world.stop().await;
}

/// Misspelt fields of requests and answers are errors of the compiler.
#[tokio::test]
async fn fields_outside_the_document_do_not_compile() {
    let slips = [
        ("Description:", "Descripton:"),
        (".TestCasesPassed", ".TestCasesPased"),
        ("\"ReadyForExecution\"", "\"Ready\""),
        ("/results\"", "/outcome\""),
        ("testSetId: set.Id", "setId: set.Id"),
    ];
    let dir = example(|session| {
        slips.iter().fold(session, |session, (right, wrong)| {
            assert!(session.contains(right), "{right} is missing");
            session.replacen(right, wrong, 1)
        })
    });
    let compiled = compile(&dir.await).await;
    let output = text_of(&compiled);
    assert!(!compiled.status.success(), "{output}");
    let errors: Vec<&str> = output.lines().filter(|line| line.starts_with("session.ts(")).collect();
    assert!(errors.len() >= slips.len(), "{output}");
    for (_, wrong) in slips {
        let wrong = wrong.trim_matches(|letter: char| !letter.is_alphanumeric());
        let wrong = wrong.split(':').next().unwrap();
        assert!(output.contains(wrong), "{wrong}: {output}");
    }
}
