//! The examples of `docs/ci.md` and `docs/ci/systems.md`, run with the variables that each CI system
//! documents: the steps with tests in each shard, and then the gate.

mod systems;

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use serde_norway::Value as Yaml;

use self::systems::{System, system};
use super::{Job, executions};
use crate::customer::Customer;

const GUIDE: &str = concat!(
    include_str!("../../../../../docs/ci.md"),
    include_str!("../../../../../docs/ci/systems.md")
);

/// The tests of a project, in the examples.
const RUN_TESTS: &str = r#"#!/bin/bash
shard=${2:-1/1}
mkdir -p reports
echo "<testsuite name='shop'><testcase classname='shop' name='test ${shard%/*}'/></testsuite>" \
    > reports/junit.xml
"#;

/// Returns the example under a heading, and its language.
fn example(heading: &str) -> (&'static str, &'static str) {
    let (_, section) = GUIDE.split_once(&format!("\n## {heading}\n")).expect(heading);
    let (_, example) = section.split_once("```").unwrap();
    let (example, _) = example.split_once("\n```").unwrap();
    example.split_once('\n').unwrap()
}

/// An example: the scripts of jobs with tests, those of the gate, and the settings of Assay.
#[derive(Default)]
struct Pipeline {
    steps: Vec<String>,
    gate: Vec<String>,
    settings: Vec<(String, String)>,
}

impl Pipeline {
    fn of(heading: &str) -> Self {
        let (language, text) = example(heading);
        let mut pipeline = Self::default();
        match language {
            "yaml" => pipeline.collect(&serde_norway::from_str(text).unwrap()),
            "groovy" => pipeline.read_groovy(text),
            "sh" => text.lines().for_each(|line| pipeline.add(line)),
            other => panic!("{other} is not the language of a pipeline"),
        }
        pipeline
    }

    /// Adds a script. A job that is used twice has it once in each shard.
    fn add(&mut self, script: &str) {
        let scripts = if script.contains("--gate") { &mut self.gate } else { &mut self.steps };
        // A command of Semaphore.
        if script != "checkout" && !scripts.iter().any(|known| known == script) {
            scripts.push(script.to_owned());
        }
    }

    /// Collects scripts in their order, and settings.
    fn collect(&mut self, yaml: &Yaml) {
        match yaml {
            Yaml::Sequence(items) => items.iter().for_each(|item| self.collect(item)),
            Yaml::Mapping(map) => {
                for (name, value) in map {
                    self.collect_field(name.as_str().unwrap_or_default(), value);
                }
            }
            _ => {}
        }
    }

    fn collect_field(&mut self, name: &str, value: &Yaml) {
        let is_script = ["run", "script", "command", "sh", "source"].contains(&name);
        let is_list =
            ["script", "after_script", "scripts", "commands", "test_script"].contains(&name);
        match value {
            Yaml::String(text) if name.starts_with("ASSAY_") => {
                self.settings.push((name.to_owned(), text.clone()));
            }
            Yaml::Bool(is) if name.starts_with("ASSAY_") => {
                self.settings.push((name.to_owned(), is.to_string()));
            }
            Yaml::String(script) if is_script || name.ends_with("_script") => self.add(script),
            Yaml::Sequence(lines) if is_list => {
                for line in lines {
                    match line.as_str() {
                        Some(line) => self.add(line),
                        None => self.collect(line),
                    }
                }
            }
            _ => self.collect(value),
        }
    }

    /// Collects the arguments of `sh` in a Jenkinsfile, and its settings.
    fn read_groovy(&mut self, text: &str) {
        for step in text.split(" sh ").skip(1) {
            let quote = step.chars().next().unwrap();
            self.add(step[1..].split(quote).next().unwrap());
        }
        let assignments = text.lines().filter_map(|line| line.trim().split_once(" = "));
        for (name, value) in assignments.filter(|(name, _)| name.starts_with("ASSAY_")) {
            self.settings.push((name.to_owned(), value.trim_matches('\'').to_owned()));
        }
    }
}

/// Runs scripts of an example as a job of the system with further variables, in a folder with the files
/// of other jobs.
async fn run(
    (customer, system): (&Customer, &System),
    (scripts, settings): (&[String], &[(String, String)]),
    shard: Option<usize>,
    files: &[Job],
) -> Job {
    let of_shard = |shard: usize| {
        let values = system.shards.iter().map(move |(name, values)| (*name, values[shard]));
        values.collect::<Vec<_>>()
    };
    let variables = shard.map(of_shard).unwrap_or_default();
    let mut job = Job::new(customer).await.with(system.variables).with(&variables);
    let replaced = |text: &str| {
        let expressions = system.expressions.iter();
        let replace = |text: String, (from, to): &(&str, [&str; 2])| {
            text.replace(from, to[shard.unwrap_or_default()])
        };
        expressions.fold(text.to_owned(), replace)
    };
    for (name, value) in settings {
        if !["ASSAY_URL", "ASSAY_TOKEN"].contains(&name.as_str()) {
            job.variables.push((name.clone(), replaced(value)));
        }
    }
    let tests = job.folder.join("run-tests");
    fs::write(&tests, RUN_TESTS).unwrap();
    fs::set_permissions(&tests, fs::Permissions::from_mode(0o755)).unwrap();
    for other in files {
        copy(&other.folder, &job.folder);
    }
    for script in scripts {
        let output = job.run(&replaced(script)).await;
        assert!(output.status.success(), "{}: {script}: {output:#?}", system.heading);
    }
    job
}

/// Copies the contents of a folder into another one.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

async fn follow_the_guide(system: &System) {
    let customer = Customer::new().await;
    let Pipeline { steps, gate, settings } = Pipeline::of(system.heading);
    assert!(!gate.is_empty(), "{}: without a gate", system.heading);
    let shards = if steps.iter().any(|step| step.contains("--shard")) { 2 } else { 1 };
    let at = (&customer, system);
    let jobs = (0..shards).map(|shard| run(at, (&steps, &settings), Some(shard), &[]));
    let jobs = futures::future::join_all(jobs).await;
    let gate = run(at, (&gate, &settings), None, &jobs).await;

    let [execution] = &executions(&customer.api).await[..] else {
        panic!("{}: several executions", system.heading)
    };
    assert_eq!(execution["Status"], "Completed", "{execution:#}");
    assert_eq!(execution["Result"], "Passed");
    assert_eq!(execution["Statistic"]["TestCasesTotal"], shards);
    for (field, expected) in [
        ("Key", system.key),
        ("CiUrl", system.url),
        ("Branch", system.branch),
        ("Commit", system.commit),
        ("Build", system.build),
    ] {
        let value = execution[field].as_str().unwrap_or_default();
        assert_eq!(value, expected, "{}: {field}", system.heading);
    }
    if system.heading == "GitHub Actions" {
        let summary = fs::read_to_string(gate.folder.join("summary.md")).unwrap();
        assert!(summary.contains("2 of 2 test cases passed"), "{summary}");
    }
}

macro_rules! systems {
    ($($test:ident: $heading:literal;)*) => {
        $(#[tokio::test(flavor = "multi_thread")]
        async fn $test() {
            follow_the_guide(system($heading)).await;
        })*
    };
}

systems! {
    jobs_of_github_actions_report: "GitHub Actions";
    jobs_of_gitlab_report: "GitLab CI";
    jobs_of_jenkins_report: "Jenkins";
    jobs_of_azure_pipelines_report: "Azure Pipelines";
    jobs_of_buildkite_report: "Buildkite";
    jobs_of_circleci_report: "CircleCI";
    jobs_of_bitbucket_pipelines_report: "Bitbucket Pipelines";
    jobs_of_teamcity_report: "TeamCity";
    jobs_of_bamboo_report: "Bamboo";
    jobs_of_codebuild_report: "AWS CodeBuild";
    jobs_of_drone_report: "Drone";
    jobs_of_woodpecker_report: "Woodpecker";
    jobs_of_tekton_report: "Tekton";
    jobs_of_argo_workflows_report: "Argo Workflows";
    jobs_of_semaphore_report: "Semaphore";
    jobs_of_appveyor_report: "AppVeyor";
    jobs_of_travis_report: "Travis CI";
    jobs_of_cirrus_report: "Cirrus CI";
}

#[tokio::test(flavor = "multi_thread")]
async fn reports_are_uploaded_without_the_program() {
    let customer = Customer::new().await;
    let job = Job::new(&customer).await;
    job.report(super::PASSED);

    let output = job.run(example("Without the program").1).await;

    assert!(output.status.success(), "{output:#?}");
    let [execution] = &executions(&customer.api).await[..] else { panic!("several executions") };
    assert_eq!(
        (execution["Status"].as_str(), execution["Key"].as_str()),
        (Some("Completed"), Some("run-1205"))
    );
    assert_eq!(execution["Statistic"]["TestCasesPassed"], 1);
}
