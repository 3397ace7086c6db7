//! The TypeScript client with types generated from the OpenAPI document.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{at, dir, node, text_of, tool};
use crate::{customer::Customer, people::password_of, world::id};

const EXAMPLE: &str = "docs/clients/typescript";

/// Slips in the session, which the compiler must find.
const SLIPS: [(&str, &str); 5] = [
    ("Description:", "Descripton:"),
    (".TestCasesPassed", ".TestCasesPased"),
    ("\"ReadyForExecution\"", "\"Ready\""),
    ("/results\"", "/outcome\""),
    ("testSetId: set.Id", "setId: set.Id"),
];

/// Copies the example to a new directory.
fn example() -> PathBuf {
    let dir = dir();
    for file in ["package.json", "tsconfig.json", "session.ts"] {
        std::fs::copy(at(EXAMPLE).join(file), dir.join(file)).unwrap();
    }
    std::os::unix::fs::symlink(at("target/tools/node/node_modules"), dir.join("node_modules"))
        .unwrap();
    dir
}

/// Copies a file of the example, with other texts.
fn copy_changed(dir: &Path, from: &str, to: &str, changes: &[(&str, &str)]) {
    let text = std::fs::read_to_string(dir.join(from)).unwrap();
    let text = changes.iter().fold(text, |text, (right, wrong)| {
        assert!(text.contains(right), "{right} is missing");
        text.replacen(right, wrong, 1)
    });
    std::fs::write(dir.join(to), text).unwrap();
}

async fn generate_types(dir: &Path) {
    let mut generator = tool("openapi-typescript/bin/cli.js", dir);
    generator.arg(at("docs/openapi.json")).args(["--output", "assay.d.ts"]);
    let made = generator.output().await.unwrap();
    assert!(made.status.success(), "{}", text_of(&made));
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

/// Misspelt fields of requests and responses are errors of the compiler, and only those.
#[tokio::test]
async fn the_example_compiles_and_fields_outside_the_document_do_not() {
    let dir = example();
    generate_types(&dir).await;
    copy_changed(&dir, "session.ts", "slips.ts", &SLIPS);
    let both = ("\"session.ts\"", "\"session.ts\", \"slips.ts\"");
    copy_changed(&dir, "tsconfig.json", "tsconfig.json", &[both]);
    let mut compiler = tool("typescript/bin/tsc", &dir);
    let output = compiler.arg("--skipDefaultLibCheck").output().await.unwrap();
    let output = text_of(&output);
    let errors: Vec<&str> = output.lines().filter(|line| line.contains("error TS")).collect();
    assert!(errors.iter().all(|error| error.starts_with("slips.ts(")), "{output}");
    assert!(errors.len() >= SLIPS.len(), "{output}");
    for (_, wrong) in SLIPS {
        let wrong = wrong.trim_matches(|letter: char| !letter.is_alphanumeric());
        let wrong = wrong.split(':').next().unwrap();
        assert!(output.contains(wrong), "{wrong}: {output}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_completes_a_session() {
    let customer = Customer::new().await;
    let tester = customer.create_member("grace", "Login, Read, Write, Execute, Accept").await;
    let dir = example();
    let mut session = node(&dir);
    session.arg("session.ts").args([&customer.url(), &tester.email]);
    session.arg(at("docs/first-session/junit.xml"));
    let session = session.env("ASSAY_PASSWORD", password_of(&tester.email)).output().await.unwrap();
    let output = text_of(&session);
    assert!(session.status.success(), "{output}");
    for what in ["1 result, 1 passed", "Pay by card: Passed, Accepted", "uploaded", "1 Failed: "] {
        assert!(output.contains(what), "{output}");
    }
    let projects = tester.api.get("/api/projects").await.ok();
    let executions = format!("/api/projects/{}/executions", id(&projects[0]));
    let executions = tester.api.get(&executions).await.ok();
    assert_eq!(executions.as_array().unwrap().len(), 2, "{output}");
}
