//! Builds of changes that are merged into their target for the build: the branch and the commit are those
//! of the change.

use super::*;

/// The last commit of the change, and the one that the build has made of it.
const HEAD: &str = "3738117e3337e54955580f4e98cf767d96b42135";
const MERGE: &str = "99684bcacf01d95875834d87903dcb072306c9ad";

/// Returns the job of a workflow of GitHub Actions that runs for an event.
fn workflow(event: &str, variables: &[(&str, &str)]) -> Job {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("event.json");
    fs::write(&path, event).unwrap();
    let more = [
        ("GITHUB_ACTIONS", "true"),
        ("GITHUB_RUN_ID", "7"),
        ("GITHUB_SHA", MERGE),
        ("GITHUB_EVENT_PATH", path.to_str().unwrap()),
    ];
    job(&[variables, &more].concat())
}

fn assert_job(job: &Job, branch: &str, commit: &str) {
    assert_eq!((job.branch.as_deref(), job.commit.as_deref()), (Some(branch), Some(commit)));
}

#[test]
fn pull_requests_of_github() {
    let own = format!(
        r#"{{"number": 12, "pull_request": {{"head": {{"sha": "{HEAD}", "ref": "dark-mode"}}}}}}"#
    );
    for event in ["pull_request", "pull_request_target", "pull_request_review"] {
        let variables = [("GITHUB_EVENT_NAME", event), ("GITHUB_REF_NAME", "12/merge")];
        assert_job(&workflow(&own, &variables), "dark-mode", HEAD);
    }
}

#[test]
fn a_branch_of_a_fork_is_not_one_of_the_repository() {
    let of = |repository: &str| {
        format!(
            r#"{{"pull_request": {{
                "head": {{"sha": "{HEAD}", "ref": "main", "user": {{"login": "hubot"}}, "repo": {repository}}},
                "base": {{"ref": "main", "repo": {{"full_name": "octocat/shop"}}}}}}}}"#
        )
    };
    let variables = [("GITHUB_EVENT_NAME", "pull_request"), ("GITHUB_HEAD_REF", "main")];
    assert_job(&workflow(&of(r#"{"full_name": "hubot/shop"}"#), &variables), "hubot:main", HEAD);
    assert_job(&workflow(&of("null"), &variables), "hubot:main", HEAD);
    assert_job(&workflow(&of(r#"{"full_name": "octocat/shop"}"#), &variables), "main", HEAD);
}

#[test]
fn workflow_runs_and_merge_queues_of_github() {
    let run = format!(
        r#"{{"workflow_run": {{"head_sha": "{HEAD}", "head_branch": "dark-mode",
            "head_repository": {{"full_name": "octocat/shop"}}}}, "repository": {{"full_name": "octocat/shop"}}}}"#
    );
    assert_job(&workflow(&run, &[("GITHUB_REF_NAME", "main")]), "dark-mode", HEAD);
    let forked = run.replacen("octocat/shop", "hubot/shop", 1);
    assert_job(&workflow(&forked, &[("GITHUB_REF_NAME", "main")]), "hubot:dark-mode", HEAD);

    let queued =
        format!(r#"{{"merge_group": {{"head_sha": "{HEAD}", "base_ref": "refs/heads/main"}}}}"#);
    let branch = "gh-readonly-queue/main/pr-12-99684bca";
    assert_job(&workflow(&queued, &[("GITHUB_REF_NAME", branch)]), branch, HEAD);
}

#[test]
fn a_workflow_without_a_readable_event_has_the_commit_of_its_variables() {
    for event in ["", "{", "[]", "null", r#"{"pull_request": 1}"#, r#"{"after": "c0ffee"}"#] {
        let variables = [("GITHUB_HEAD_REF", "dark-mode")];
        assert_job(&workflow(event, &variables), "dark-mode", MERGE);
    }
    let missing = job(&[
        ("GITHUB_ACTIONS", "true"),
        ("GITHUB_RUN_ID", "7"),
        ("GITHUB_EVENT_PATH", "/missing/event.json"),
        ("GITHUB_SHA", MERGE),
        ("GITHUB_REF_NAME", "main"),
    ]);
    assert_job(&missing, "main", MERGE);
}

/// A build of a change from the branch `dark-mode`, and the name of its branch.
type Change = (&'static [(&'static str, &'static str)], &'static str);

const CHANGES: [Change; 14] = [
    (
        &[
            ("GITLAB_CI", "true"),
            ("CI_PIPELINE_ID", "7"),
            ("CI_MERGE_REQUEST_EVENT_TYPE", "merge_train"),
            ("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME", "dark-mode"),
            ("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA", HEAD),
            ("CI_MERGE_REQUEST_SOURCE_PROJECT_PATH", "octocat/shop"),
            ("CI_MERGE_REQUEST_PROJECT_PATH", "octocat/shop"),
            ("CI_COMMIT_REF_NAME", "refs/merge-requests/12/train"),
            ("CI_COMMIT_SHA", MERGE),
        ],
        "dark-mode",
    ),
    (
        &[
            ("GITLAB_CI", "true"),
            ("CI_PIPELINE_ID", "7"),
            ("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME", "dark-mode"),
            ("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA", ""),
            ("CI_MERGE_REQUEST_SOURCE_PROJECT_PATH", "group/hubot/shop"),
            ("CI_MERGE_REQUEST_PROJECT_PATH", "group/shop"),
            ("CI_COMMIT_SHA", HEAD),
        ],
        "group/hubot:dark-mode",
    ),
    (
        &[
            ("GITLAB_CI", "true"),
            ("CI_PIPELINE_ID", "7"),
            ("CI_EXTERNAL_PULL_REQUEST_SOURCE_BRANCH_NAME", "dark-mode"),
            ("CI_EXTERNAL_PULL_REQUEST_SOURCE_BRANCH_SHA", HEAD),
            ("CI_COMMIT_SHA", MERGE),
        ],
        "dark-mode",
    ),
    (
        &[
            ("TF_BUILD", "True"),
            ("BUILD_BUILDID", "7"),
            ("BUILD_SOURCEBRANCH", "refs/pull/12/merge"),
            ("BUILD_SOURCEVERSION", MERGE),
            ("SYSTEM_PULLREQUEST_SOURCEBRANCH", "refs/heads/dark-mode"),
            ("SYSTEM_PULLREQUEST_SOURCECOMMITID", HEAD),
            ("SYSTEM_PULLREQUEST_ISFORK", "False"),
        ],
        "dark-mode",
    ),
    (
        &[
            ("TF_BUILD", "True"),
            ("BUILD_BUILDID", "7"),
            ("SYSTEM_PULLREQUEST_SOURCEBRANCH", "dark-mode"),
            ("SYSTEM_PULLREQUEST_SOURCECOMMITID", HEAD),
            ("SYSTEM_PULLREQUEST_ISFORK", "True"),
            ("SYSTEM_PULLREQUEST_SOURCEREPOSITORYURI", "https://github.com/hubot/shop"),
        ],
        "hubot:dark-mode",
    ),
    (
        &[
            ("BUILDKITE", "true"),
            ("BUILDKITE_BUILD_ID", "7"),
            ("BUILDKITE_PULL_REQUEST_REPO", "git://github.com/hubot/shop.git"),
            ("BUILDKITE_REPO", "git@github.com:octocat/shop.git"),
            ("BUILDKITE_BRANCH", "dark-mode"),
            ("BUILDKITE_COMMIT", HEAD),
        ],
        "hubot:dark-mode",
    ),
    (
        &[
            ("BUILDKITE", "true"),
            ("BUILDKITE_BUILD_ID", "7"),
            ("BUILDKITE_PULL_REQUEST_REPO", "https://github.com/octocat/shop.git"),
            ("BUILDKITE_REPO", "git@github.com:octocat/shop.git"),
            ("BUILDKITE_BRANCH", "dark-mode"),
            ("BUILDKITE_COMMIT", HEAD),
        ],
        "dark-mode",
    ),
    (
        &[
            ("TRAVIS", "true"),
            ("TRAVIS_BUILD_ID", "7"),
            ("TRAVIS_BRANCH", "main"),
            ("TRAVIS_COMMIT", MERGE),
            ("TRAVIS_PULL_REQUEST_BRANCH", "dark-mode"),
            ("TRAVIS_PULL_REQUEST_SHA", HEAD),
            ("TRAVIS_PULL_REQUEST_SLUG", "hubot/shop"),
            ("TRAVIS_REPO_SLUG", "octocat/shop"),
        ],
        "hubot:dark-mode",
    ),
    (
        &[
            ("APPVEYOR", "True"),
            ("APPVEYOR_BUILD_ID", "7"),
            ("APPVEYOR_REPO_BRANCH", "main"),
            ("APPVEYOR_REPO_COMMIT", MERGE),
            ("APPVEYOR_REPO_NAME", "octocat/shop"),
            ("APPVEYOR_PULL_REQUEST_HEAD_REPO_NAME", "octocat/shop"),
            ("APPVEYOR_PULL_REQUEST_HEAD_REPO_BRANCH", "dark-mode"),
            ("APPVEYOR_PULL_REQUEST_HEAD_COMMIT", HEAD),
        ],
        "dark-mode",
    ),
    (
        &[
            ("DRONE", "true"),
            ("DRONE_BUILD_NUMBER", "7"),
            ("DRONE_BRANCH", "main"),
            ("DRONE_SOURCE_BRANCH", "dark-mode"),
            ("DRONE_COMMIT_SHA", HEAD),
        ],
        "dark-mode",
    ),
    (
        &[
            ("CI_SYSTEM_NAME", "woodpecker"),
            ("CI_PIPELINE_NUMBER", "7"),
            ("CI_COMMIT_BRANCH", "main"),
            ("CI_COMMIT_SOURCE_BRANCH", "dark-mode"),
            ("CI_COMMIT_SHA", HEAD),
        ],
        "dark-mode",
    ),
    (
        &[
            ("SEMAPHORE", "true"),
            ("SEMAPHORE_PIPELINE_ID", "7"),
            ("SEMAPHORE_GIT_BRANCH", "main"),
            ("SEMAPHORE_GIT_SHA", MERGE),
            ("SEMAPHORE_GIT_PR_BRANCH", "dark-mode"),
            ("SEMAPHORE_GIT_PR_SHA", HEAD),
            ("SEMAPHORE_GIT_PR_SLUG", "hubot/shop"),
            ("SEMAPHORE_GIT_REPO_SLUG", "octocat/shop"),
        ],
        "hubot:dark-mode",
    ),
    (
        &[
            ("JENKINS_URL", "https://ci.example.org/"),
            ("BUILD_NUMBER", "7"),
            ("BRANCH_NAME", "PR-12"),
            ("CHANGE_ID", "12"),
            ("CHANGE_BRANCH", "dark-mode"),
            ("CHANGE_FORK", "hubot"),
            ("GIT_COMMIT", HEAD),
        ],
        "hubot:dark-mode",
    ),
    (
        &[
            ("JENKINS_URL", "https://ci.example.org/"),
            ("BUILD_NUMBER", "7"),
            ("GIT_BRANCH", "origin/pr/12/merge"),
            ("GIT_COMMIT", MERGE),
            ("ghprbSourceBranch", "dark-mode"),
            ("ghprbActualCommit", HEAD),
        ],
        "dark-mode",
    ),
];

#[test]
fn changes_of_other_systems() {
    for (variables, branch) in CHANGES {
        let job = job(variables);
        assert_eq!(job.branch.as_deref(), Some(branch), "{variables:?}");
        assert_eq!(job.commit.as_deref(), Some(HEAD), "{variables:?}");
    }
}

#[test]
fn builds_of_tags_have_no_branch() {
    let tags: [&[(&str, &str)]; 7] = [
        &[
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_RUN_ID", "7"),
            ("GITHUB_REF_TYPE", "tag"),
            ("GITHUB_REF_NAME", "v1"),
        ],
        &[
            ("GITLAB_CI", "true"),
            ("CI_PIPELINE_ID", "7"),
            ("CI_COMMIT_TAG", "v1"),
            ("CI_COMMIT_REF_NAME", "v1"),
        ],
        &[("TF_BUILD", "True"), ("BUILD_BUILDID", "7"), ("BUILD_SOURCEBRANCH", "refs/tags/v1")],
        &[
            ("BUILDKITE", "true"),
            ("BUILDKITE_BUILD_ID", "7"),
            ("BUILDKITE_BRANCH", "v1"),
            ("BUILDKITE_TAG", "v1"),
        ],
        &[
            ("TRAVIS", "true"),
            ("TRAVIS_BUILD_ID", "7"),
            ("TRAVIS_BRANCH", "v1"),
            ("TRAVIS_TAG", "v1"),
        ],
        &[
            ("JENKINS_URL", "https://ci.example.org/"),
            ("BUILD_NUMBER", "7"),
            ("BRANCH_NAME", "v1"),
            ("TAG_NAME", "v1"),
        ],
        &[
            ("CODEBUILD_BUILD_ARN", "arn"),
            ("CODEBUILD_WEBHOOK_HEAD_REF", "refs/tags/v1"),
            ("CODEBUILD_WEBHOOK_TRIGGER", "tag/v1"),
        ],
    ];
    for variables in tags {
        assert_eq!(job(variables).branch, None, "{variables:?}");
    }
}

#[test]
fn head_is_not_a_commit() {
    let build = [("BUILDKITE", "true"), ("BUILDKITE_BUILD_ID", "7"), ("BUILDKITE_COMMIT", "HEAD")];
    assert_eq!(job(&build).commit, None);
}
