//! Jobs of CI systems, with the variables that they document.

use std::fs;

use super::*;

mod builds;
mod merges;
mod shards;

/// Returns the job that a process with these variables belongs to.
fn detect(variables: &[(&str, &str)]) -> Option<Job> {
    Job::detect(&Variables::new(&|name| {
        let value = variables.iter().find(|(known, _)| *known == name);
        value.map(|(_, value)| (*value).to_owned())
    }))
}

fn job(variables: &[(&str, &str)]) -> Job {
    detect(variables).expect("a job")
}

fn key(variables: &[(&str, &str)]) -> String {
    job(variables).key.expect("a key")
}

#[test]
fn a_process_outside_of_a_ci_system_has_no_job() {
    assert_eq!(detect(&[]), None);
    assert_eq!(detect(&[("GITHUB_ACTIONS", "")]), None);
    assert_eq!(detect(&[("GITHUB_ACTIONS", "true")]), None, "without a run");
}

#[test]
fn a_repeated_run_has_another_key() {
    let attempt = |attempt| {
        key(&[
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_SERVER_URL", "https://github.com"),
            ("GITHUB_REPOSITORY", "octocat/shop"),
            ("GITHUB_RUN_ID", "7"),
            ("GITHUB_RUN_ATTEMPT", attempt),
            ("GITHUB_JOB", "test"),
        ])
    };
    assert_eq!(attempt("1"), "github:github.com:octocat/shop:7:1:test");
    assert_ne!(attempt("1"), attempt("2"));
}

#[test]
fn runs_of_two_servers_and_of_two_repositories_have_different_keys() {
    for (system, server, repository, run) in [
        ("GITLAB_CI", "CI_SERVER_URL", "CI_PROJECT_PATH", "CI_PIPELINE_ID"),
        ("JENKINS_URL", "JENKINS_URL", "JOB_NAME", "BUILD_NUMBER"),
        ("GITHUB_ACTIONS", "GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID"),
        ("DRONE", "DRONE_SYSTEM_HOST", "DRONE_REPO", "DRONE_BUILD_NUMBER"),
        ("CI_SYSTEM_NAME", "CI_SYSTEM_URL", "CI_REPO", "CI_PIPELINE_NUMBER"),
        ("TEAMCITY_VERSION", "BUILD_URL", "TEAMCITY_BUILDCONF_NAME", "BUILD_NUMBER"),
        ("APPVEYOR", "APPVEYOR_URL", "APPVEYOR_REPO_NAME", "APPVEYOR_BUILD_ID"),
        ("TF_BUILD", "SYSTEM_COLLECTIONURI", "SYSTEM_TEAMPROJECT", "BUILD_BUILDID"),
        ("GO_PIPELINE_LABEL", "GO_SERVER_URL", "GO_PIPELINE_NAME", "GO_PIPELINE_COUNTER"),
    ] {
        let of = |url, name| {
            let marker = if system == "CI_SYSTEM_NAME" { "woodpecker" } else { "1" };
            // The first value of a variable counts.
            key(&[
                (server, url),
                (repository, name),
                (run, "7"),
                ("CI_JOB_NAME", "t"),
                (system, marker),
            ])
        };
        let one = of("https://one.example.org/", "octocat/shop");
        assert_eq!(one, of("https://one.example.org/", "octocat/shop"), "{system}");
        assert_ne!(one, of("https://two.example.org/", "octocat/shop"), "{system}");
        assert_ne!(one, of("https://one.example.org/ci", "octocat/shop"), "{system}: another path");
        assert_ne!(one, of("https://one.example.org/", "octocat-shop"), "{system}");
    }
}

#[test]
fn different_parts_never_make_the_same_key() {
    let azure = |stage, phase| {
        key(&[
            ("TF_BUILD", "True"),
            ("BUILD_BUILDID", "7"),
            ("SYSTEM_STAGENAME", stage),
            ("SYSTEM_PHASENAME", phase),
        ])
    };
    assert_ne!(azure("a-b", "c"), azure("a", "b-c"));
    assert_ne!(azure("a:b", "c"), azure("a", "b:c"));
    assert_ne!(azure("a b", "c"), azure("a_b", "c"));
    assert_ne!(azure("a", ""), azure("", "a"));
}

#[test]
fn a_key_is_short_and_visible_and_ends_with_a_hash_of_a_long_name() {
    let build = |number: &str| {
        let folders = "ordner größe/".repeat(40) + "shop";
        key(&[
            ("JENKINS_URL", "https://ci.example.org"),
            ("JOB_NAME", &folders),
            ("BUILD_NUMBER", number),
        ])
    };
    assert_ne!(build("1205"), build("1206"));
    assert_eq!(build("1205"), build("1205"));
    for key in [build("1205"), build("1206")] {
        assert!(key.len() <= 240, "{key}");
        assert!(key.bytes().all(|byte| byte.is_ascii_graphic()), "{key}");
    }
}

#[test]
fn pods_of_one_template_of_an_argo_workflow_have_one_key() {
    let pod = |node, template| key(&[("ARGO_NODE_ID", node), ("ARGO_TEMPLATE", template)]);
    let test = r#"{"name": "test", "container": {}}"#;
    assert_eq!(pod("shop-x7k2p-3456", test), pod("shop-x7k2p-9871", test));
    assert_ne!(pod("shop-x7k2p-3456", test), pod("shop-b2b2b-3456", test));
    assert_ne!(pod("shop-x7k2p-3456", test), pod("shop-x7k2p-3456", r#"{"name": "lint"}"#));
}

#[test]
fn parameters_of_a_teamcity_build_are_read_from_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (system, others) = (path("system.properties"), path("others.properties"));
    let escaped = others.replace('/', "\\/");
    let first = format!(
        "#Fri Nov 27\nteamcity.build.id=9871\nteamcity.configuration.properties.file={escaped}\n"
    );
    fs::write(&system, first).unwrap();
    let second = "teamcity.serverUrl=https\\://teamcity.example.org\nteamcity.build.branch=pull/12\n\
        teamcity.pullRequest.source.branch=dark-mode\n";
    fs::write(&others, second).unwrap();
    let variables = [
        ("TEAMCITY_VERSION", "2026.1"),
        ("TEAMCITY_BUILD_PROPERTIES_FILE", &*system),
        ("BUILD_NUMBER", "1205"),
        ("BUILD_VCS_NUMBER", "c0ffee"),
    ];

    let found = job(&variables);

    assert_eq!(found.branch.as_deref(), Some("dark-mode"));
    let url = "https://teamcity.example.org/viewLog.html?buildId=9871";
    assert_eq!(found.url.as_deref(), Some(url));
    assert_eq!(found.key.as_deref(), Some("teamcity:teamcity.example.org::9871"));
    fs::write(&others, "teamcity.build.branch=<default>\n").unwrap();
    assert_eq!(job(&variables).branch, None);
}
