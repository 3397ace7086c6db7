//! The examples of `docs/ci.md`, run with the variables that each CI system documents.

use std::{fs, os::unix::fs::PermissionsExt};

use serde_norway::Value as Yaml;

use super::{Job, executions};
use crate::customer::Customer;

const GUIDE: &str = include_str!("../../../../../docs/ci.md");

/// The tests of a project, in the examples.
const RUN_TESTS: &str = r#"#!/bin/bash
shard=${2:-1/1}
mkdir -p reports
echo "<testsuite name='shop'><testcase classname='shop' name='test ${shard%/*}'/></testsuite>" \
    > reports/junit.xml
"#;

/// A CI system: its heading in the guide, and the variables of two jobs of one run.
struct System {
    heading: &'static str,
    variables: &'static [(&'static str, &'static str)],
    /// Variables with different values in the two jobs.
    shards: &'static [(&'static str, [&'static str; 2])],
    /// Expressions that the system replaces, and their values in the two jobs.
    expressions: &'static [(&'static str, [&'static str; 2])],
    key: &'static str,
    url: &'static str,
}

const SYSTEMS: [System; 6] = [
    System {
        heading: "GitHub Actions",
        variables: &[
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_RUN_ID", "1658821493"),
            ("GITHUB_RUN_ATTEMPT", "1"),
            ("GITHUB_RUN_NUMBER", "1205"),
            ("GITHUB_JOB", "test"),
            ("GITHUB_REF_NAME", "main"),
            ("GITHUB_HEAD_REF", ""),
            ("GITHUB_SHA", "ffac537e6cbbf934b08745a378932722df287a53"),
            ("GITHUB_SERVER_URL", "https://github.com"),
            ("GITHUB_REPOSITORY", "octocat/shop"),
            ("GITHUB_STEP_SUMMARY", "summary.md"),
        ],
        shards: &[],
        expressions: &[
            ("${{ matrix.shard }}", ["1", "2"]),
            ("${{ strategy.job-index }}", ["0", "1"]),
            ("${{ strategy.job-total }}", ["2", "2"]),
        ],
        key: "github-1658821493-1-test",
        url: "https://github.com/octocat/shop/actions/runs/1658821493",
    },
    System {
        heading: "GitLab CI",
        variables: &[
            ("GITLAB_CI", "true"),
            ("CI_PIPELINE_ID", "9871"),
            ("CI_PIPELINE_IID", "1205"),
            ("CI_PIPELINE_URL", "https://gitlab.com/octocat/shop/-/pipelines/9871"),
            ("CI_COMMIT_BRANCH", "main"),
            ("CI_COMMIT_REF_NAME", "main"),
            ("CI_COMMIT_SHA", "ffac537e6cbbf934b08745a378932722df287a53"),
            ("CI_NODE_TOTAL", "2"),
        ],
        shards: &[("CI_NODE_INDEX", ["1", "2"]), ("CI_JOB_NAME", ["test 1/2", "test 2/2"])],
        expressions: &[],
        key: "gitlab-9871-test",
        url: "https://gitlab.com/octocat/shop/-/pipelines/9871",
    },
    System {
        heading: "Jenkins",
        variables: &[
            ("JENKINS_URL", "https://jenkins.example.org/"),
            ("BUILD_TAG", "jenkins-shop-1205"),
            ("BUILD_NUMBER", "1205"),
            ("BUILD_URL", "https://jenkins.example.org/job/shop/1205/"),
            ("GIT_BRANCH", "origin/main"),
            ("GIT_COMMIT", "ffac537e6cbbf934b08745a378932722df287a53"),
        ],
        shards: &[],
        expressions: &[],
        key: "jenkins-jenkins-shop-1205",
        url: "https://jenkins.example.org/job/shop/1205/",
    },
    System {
        heading: "Azure Pipelines",
        variables: &[
            ("TF_BUILD", "True"),
            ("BUILD_BUILDID", "9871"),
            ("BUILD_BUILDNUMBER", "1205"),
            ("BUILD_SOURCEBRANCH", "refs/heads/main"),
            ("BUILD_SOURCEVERSION", "ffac537e6cbbf934b08745a378932722df287a53"),
            ("SYSTEM_COLLECTIONURI", "https://dev.azure.com/octocat/"),
            ("SYSTEM_TEAMPROJECTID", "6ce954b1"),
            ("SYSTEM_STAGENAME", "__default"),
            ("SYSTEM_STAGEATTEMPT", "1"),
            ("SYSTEM_PHASENAME", "test"),
            ("SYSTEM_TOTALJOBSINPHASE", "2"),
            ("AGENT_TEMPDIRECTORY", "."),
        ],
        shards: &[("SYSTEM_JOBPOSITIONINPHASE", ["1", "2"])],
        expressions: &[
            ("$(System.JobPositionInPhase)", ["1", "2"]),
            ("$(System.TotalJobsInPhase)", ["2", "2"]),
        ],
        key: "azure-9871-__default-test-1",
        url: "https://dev.azure.com/octocat/6ce954b1/_build/results?buildId=9871",
    },
    System {
        heading: "Buildkite",
        variables: &[
            ("BUILDKITE", "true"),
            ("BUILDKITE_BUILD_ID", "4735ba57"),
            ("BUILDKITE_STEP_ID", "80c2"),
            ("BUILDKITE_BUILD_NUMBER", "1205"),
            ("BUILDKITE_BUILD_URL", "https://buildkite.com/octocat/shop/builds/1205"),
            ("BUILDKITE_BRANCH", "main"),
            ("BUILDKITE_COMMIT", "ffac537e6cbbf934b08745a378932722df287a53"),
            ("BUILDKITE_PARALLEL_JOB_COUNT", "2"),
        ],
        shards: &[("BUILDKITE_PARALLEL_JOB", ["0", "1"])],
        expressions: &[("$$", ["$", "$"])],
        key: "buildkite-4735ba57-80c2",
        url: "https://buildkite.com/octocat/shop/builds/1205",
    },
    System {
        heading: "CircleCI",
        variables: &[
            ("CIRCLECI", "true"),
            ("CIRCLE_WORKFLOW_ID", "e8f4"),
            ("CIRCLE_JOB", "test"),
            ("CIRCLE_BUILD_NUM", "1205"),
            ("CIRCLE_BUILD_URL", "https://circleci.com/gh/octocat/shop/1205"),
            ("CIRCLE_BRANCH", "main"),
            ("CIRCLE_SHA1", "ffac537e6cbbf934b08745a378932722df287a53"),
            ("CIRCLE_NODE_TOTAL", "2"),
        ],
        shards: &[("CIRCLE_NODE_INDEX", ["0", "1"])],
        expressions: &[],
        key: "circleci-e8f4-test",
        url: "https://circleci.com/gh/octocat/shop/1205",
    },
];

/// Returns the example under a heading, and its language.
fn example(heading: &str) -> (&'static str, &'static str) {
    let (_, section) = GUIDE.split_once(&format!("\n## {heading}\n")).expect(heading);
    let (_, example) = section.split_once("```").unwrap();
    let (example, _) = example.split_once("\n```").unwrap();
    example.split_once('\n').unwrap()
}

/// Collects the scripts of a pipeline in their order, and its settings of Assay.
fn scripts(yaml: &Yaml, scripts: &mut Vec<String>, settings: &mut Vec<(String, String)>) {
    match yaml {
        Yaml::Sequence(items) => {
            for item in items {
                self::scripts(item, scripts, settings);
            }
        }
        Yaml::Mapping(map) => {
            for (name, value) in map {
                let name = name.as_str().unwrap();
                match (name, value) {
                    ("run" | "script" | "command", Yaml::String(script)) => {
                        scripts.push(script.clone());
                    }
                    ("script" | "after_script", Yaml::Sequence(lines)) => {
                        scripts.extend(lines.iter().map(|line| line.as_str().unwrap().to_owned()));
                    }
                    (_, Yaml::String(text)) if name.starts_with("ASSAY_") => {
                        settings.push((name.to_owned(), text.clone()));
                    }
                    _ => self::scripts(value, scripts, settings),
                }
            }
        }
        _ => {}
    }
}

/// Returns the arguments of `sh` in a Jenkinsfile.
fn shell_steps(groovy: &str) -> Vec<String> {
    let steps = groovy.split(" sh ").skip(1).map(|step| {
        let quote = step.chars().next().unwrap();
        step[1..].split(quote).next().unwrap().to_owned()
    });
    // A post section follows the steps.
    steps.collect()
}

/// Runs the example of a system as one of its jobs; returns the job.
async fn run(customer: &Customer, system: &System, shard: usize) -> Job {
    let job = Job::new(customer).await.with(system.variables);
    let shards: Vec<_> =
        system.shards.iter().map(|(name, values)| (*name, values[shard])).collect();
    let mut job = job.with(&shards);
    let (language, text) = example(system.heading);
    let (mut steps, mut settings) = (Vec::new(), Vec::new());
    match language {
        "yaml" => scripts(&serde_norway::from_str(text).unwrap(), &mut steps, &mut settings),
        "groovy" => steps = shell_steps(text),
        other => panic!("{other} is not the language of a pipeline"),
    }
    let replaced = |text: &str| {
        let expressions = system.expressions.iter();
        expressions.fold(text.to_owned(), |text, (from, to)| text.replace(from, to[shard]))
    };
    for (name, value) in settings {
        if !["ASSAY_URL", "ASSAY_TOKEN"].contains(&name.as_str()) {
            job.variables.push((name, replaced(&value)));
        }
    }
    let tests = job.folder.join("run-tests");
    fs::write(&tests, RUN_TESTS).unwrap();
    fs::set_permissions(&tests, fs::Permissions::from_mode(0o755)).unwrap();
    assert!(steps.iter().any(|step| step.contains("assay-ci upload")), "{steps:?}");
    for step in steps {
        let output = job.run(&replaced(&step)).await;
        assert!(output.status.success(), "{}: {step}: {output:#?}", system.heading);
    }
    job
}

async fn follow_the_guide(system: &System) {
    let customer = Customer::new().await;
    let shards = if example(system.heading).1.contains("run-tests --shard") { 2 } else { 1 };
    let jobs = futures::future::join_all((0..shards).map(|shard| run(&customer, system, shard)));
    let jobs = jobs.await;

    let [execution] = &executions(&customer.api).await[..] else {
        panic!("{}: several executions", system.heading)
    };
    assert_eq!(execution["Status"], "Completed", "{execution:#}");
    assert_eq!(execution["Result"], "Passed");
    assert_eq!(execution["Statistic"]["TestCasesTotal"], shards);
    assert_eq!(execution["Branch"], "main");
    assert_eq!(execution["Commit"], "ffac537e6cbbf934b08745a378932722df287a53");
    assert_eq!(execution["Build"], "1205");
    assert_eq!(execution["Key"], system.key);
    assert_eq!(execution["CiUrl"], system.url);
    let summary = |job: &Job| fs::read_to_string(job.folder.join("summary.md")).ok();
    let summaries: Vec<_> = jobs.iter().filter_map(summary).collect();
    if system.heading == "GitHub Actions" {
        assert_eq!(summaries.len(), 1, "of the last job");
        assert!(summaries[0].contains("Passed, 2 of 2 tests passed"), "{}", summaries[0]);
    }
}

macro_rules! systems {
    ($($test:ident: $index:literal;)*) => {
        $(#[tokio::test(flavor = "multi_thread")]
        async fn $test() {
            follow_the_guide(&SYSTEMS[$index]).await;
        })*
    };
}

systems! {
    jobs_of_github_actions_report: 0;
    jobs_of_gitlab_report: 1;
    jobs_of_jenkins_report: 2;
    jobs_of_azure_pipelines_report: 3;
    jobs_of_buildkite_report: 4;
    jobs_of_circleci_report: 5;
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
