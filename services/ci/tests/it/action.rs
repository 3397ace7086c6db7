//! The action for GitHub and the component for GitLab, run as the systems run them.

use std::{collections::HashMap, fs, path::Path, process::Command};

use serde_norway::Value as Yaml;

use super::jobs::Executions;

const ACTION: &str = include_str!("../../github/action.yml");
const COMPONENT: &str = include_str!("../../gitlab/templates/gate.yml");

const RUN: [(&str, &str); 5] = [
    ("GITHUB_ACTIONS", "true"),
    ("GITHUB_RUN_ID", "7"),
    ("GITHUB_RUN_ATTEMPT", "1"),
    ("GITHUB_JOB", "test"),
    ("RUNNER_TEMP", "/tmp"),
];

/// Replaces the expressions of a text.
fn replaced(text: &str, (open, close): (&str, &str), values: &HashMap<String, String>) -> String {
    let mut parts = text.split(open);
    let mut replaced = parts.next().unwrap().to_owned();
    for part in parts {
        let (name, rest) = part.split_once(close).unwrap();
        replaced.push_str(values.get(name.trim()).unwrap_or_else(|| panic!("no {name}")));
        replaced.push_str(rest);
    }
    replaced
}

fn text(yaml: &Yaml) -> String {
    match yaml {
        Yaml::String(text) => text.clone(),
        Yaml::Bool(value) => value.to_string(),
        other => panic!("{other:?} is not a text"),
    }
}

/// Runs a script in which `assay-ci` is the program. Returns its exit code and output.
fn run(script: &str, folder: &Path, variables: &[(String, String)]) -> (i32, String) {
    let program = Path::new(env!("CARGO_BIN_EXE_assay-ci")).parent().unwrap();
    let output = Command::new("bash")
        .args(["-ec", script])
        .current_dir(folder)
        .env_clear()
        .env("PATH", format!("{}:/usr/bin:/bin", program.display()))
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(text).unwrap())
}

/// Runs the action in a job of a matrix with two jobs.
fn act(url: &str, index: &str, inputs: &[(&str, &str)]) -> (i32, String) {
    let action: Yaml = serde_norway::from_str(ACTION).unwrap();
    let mut values: HashMap<String, String> = HashMap::new();
    for (name, value) in [("job-index", index), ("job-total", "2")] {
        values.insert(format!("strategy.{name}"), value.to_owned());
    }
    values.insert("github.token".to_owned(), "ghs".to_owned());
    let expression = ("${{", "}}");
    let given = [("url", url), ("token", "t"), ("project", "shop"), ("set", "nightly")];
    let given: HashMap<_, _> = given.iter().chain(inputs).copied().collect();
    for (name, input) in action["inputs"].as_mapping().unwrap() {
        let name = name.as_str().unwrap();
        let default = || replaced(&text(&input["default"]), expression, &values);
        let value = given.get(name).map_or_else(default, |value| (*value).to_owned());
        values.insert(format!("inputs.{name}"), value);
    }
    let step = &action["runs"]["steps"][0];
    let variables = step["env"].as_mapping().unwrap().iter();
    let variables =
        variables.map(|(name, value)| (text(name), replaced(&text(value), expression, &values)));
    let run_of = RUN.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("junit (1).xml"), "<testsuite/>").unwrap();
    fs::write(folder.path().join("more.xml"), "<testsuite/>").unwrap();
    run(&text(&step["run"]), folder.path(), &variables.chain(run_of).collect::<Vec<_>>())
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_of_a_matrix_report_to_one_execution_by_the_action() {
    let executions = Executions::default();
    let url = executions.serve().await;
    for index in ["0", "1"] {
        let (code, output) = act(&url, index, &[("files", "junit (1).xml\nmore.xml\n")]);
        assert_eq!(code, 0, "{output}");
        assert!(output.contains("2 of 2 files"), "{output}");
    }
    let [execution] = &executions.lock()[..] else { panic!("several executions") };
    assert!(execution.has_ended);
    assert_eq!(execution.input["Reporters"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn all_jobs_of_a_run_report_to_one_execution_until_the_action_completes_it() {
    let executions = Executions::default();
    let url = executions.serve().await;
    let whole = ("whole-run", "true");
    for index in ["0", "1"] {
        let inputs = [whole, ("files", "more.xml"), ("arguments", "--branch\nmain")];
        let (code, output) = act(&url, index, &inputs);
        assert_eq!(code, 0, "{output}");
        assert!(!executions.lock()[0].has_ended, "{output}");
    }
    let (code, output) = act(&url, "0", &[whole]);
    assert_eq!(code, 0, "{output}");
    let [execution] = &executions.lock()[..] else { panic!("several executions") };
    assert!(execution.has_ended && execution.reports == 2);
    assert_eq!(
        (&execution.input["Reporter"], &execution.input["Branch"]),
        (&"test 0".into(), &"main".into())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn inputs_of_the_action_are_not_commands() {
    let url = Executions::default().serve().await;
    let (code, output) = act(&url, "0", &[("files", "$(touch owned) `touch owned`; touch owned")]);
    assert_eq!(code, 3, "{output}");
    assert!(output.contains("no file with contents matches $(touch owned)"), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_component_of_gitlab_uploads_artifacts_and_judges() {
    let (_, job) = COMPONENT.split_once("\n---\n").unwrap();
    let executions = Executions::default();
    let values = [
        ("job-name", "assay"),
        ("stage", ".post"),
        ("needs", "[test]"),
        ("image", "assay/ci"),
        ("url", &*executions.serve().await),
        ("project", "shop"),
        ("set", "nightly"),
        ("files", "reports/**/*.xml"),
        ("comment", "true"),
    ];
    let values = values.map(|(name, value)| (format!("inputs.{name}"), value.to_owned())).into();
    let job: Yaml = serde_norway::from_str(&replaced(job, ("$[[", "]]"), &values)).unwrap();
    let variables = job["assay"]["variables"].as_mapping().unwrap().iter();
    let mut variables: Vec<_> = variables.map(|(name, value)| (text(name), text(value))).collect();
    let more = [
        ("GITLAB_CI", "true"),
        ("CI_PIPELINE_ID", "7"),
        ("CI_JOB_NAME", "assay"),
        ("ASSAY_TOKEN", "t"),
    ];
    variables.extend(more.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let folder = tempfile::tempdir().unwrap();
    for shard in ["1", "2"] {
        let folder = folder.path().join("reports").join(shard);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("junit.xml"), "<testsuite/>").unwrap();
    }

    let (code, output) = run(&text(&job["assay"]["script"][0]), folder.path(), &variables);

    // The server has no verdicts.
    assert_eq!(code, 3, "{output}");
    assert!(output.contains("2 of 2 files") && output.contains("404 Not Found"), "{output}");
    assert!(executions.lock()[0].has_ended);
}
