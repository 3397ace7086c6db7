//! Builds of a branch.

use super::*;

/// A build of a branch: the variables of a system, and its branch, build and link.
type Build =
    (&'static [(&'static str, &'static str)], Option<&'static str>, &'static str, &'static str);

const BUILDS: [Build; 12] = [
    (
        &[
            ("TEAMCITY_VERSION", "2026.1"),
            ("BUILD_NUMBER", "1205"),
            ("BUILD_VCS_NUMBER", "c0ffee"),
            ("TEAMCITY_PROJECT_NAME", "Shop"),
            ("BUILD_URL", "https://teamcity.example.org/build/9871"),
        ],
        None,
        "1205",
        "https://teamcity.example.org/build/9871",
    ),
    (
        &[
            ("BITBUCKET_BUILD_NUMBER", "1205"),
            ("BITBUCKET_REPO_FULL_NAME", "octocat/shop"),
            ("BITBUCKET_BRANCH", "main"),
            ("BITBUCKET_COMMIT", "c0ffee"),
            ("BITBUCKET_STEP_UUID", "{1}"),
        ],
        Some("main"),
        "1205",
        "https://bitbucket.org/octocat/shop/pipelines/results/1205",
    ),
    (
        &[
            ("bamboo_buildResultKey", "SHOP-TEST-JOB1-1205"),
            ("bamboo_planKey", "SHOP-TEST"),
            ("bamboo_buildNumber", "1205"),
            ("bamboo_planRepository_branchName", "main"),
            ("bamboo_planRepository_revision", "c0ffee"),
            ("bamboo_buildResultsUrl", "https://bamboo.example.org/browse/SHOP-TEST-JOB1-1205"),
        ],
        Some("main"),
        "1205",
        "https://bamboo.example.org/browse/SHOP-TEST-JOB1-1205",
    ),
    (
        &[
            ("CODEBUILD_BUILD_ARN", "arn:aws:codebuild:eu-west-1:1:build/shop:b1e6661e"),
            ("CODEBUILD_BUILD_NUMBER", "1205"),
            ("CODEBUILD_RESOLVED_SOURCE_VERSION", "c0ffee"),
            ("CODEBUILD_WEBHOOK_TRIGGER", "branch/main"),
            ("CODEBUILD_BUILD_URL", "https://console.aws.amazon.com/1205"),
        ],
        Some("main"),
        "1205",
        "https://console.aws.amazon.com/1205",
    ),
    (
        &[
            ("DRONE", "true"),
            ("DRONE_BUILD_NUMBER", "1205"),
            ("DRONE_COMMIT_BRANCH", "main"),
            ("DRONE_COMMIT_SHA", "c0ffee"),
            ("DRONE_BUILD_LINK", "https://drone.example.org/octocat/shop/1205"),
        ],
        Some("main"),
        "1205",
        "https://drone.example.org/octocat/shop/1205",
    ),
    (
        &[
            ("CI", "woodpecker"),
            ("CI_PIPELINE_NUMBER", "1205"),
            ("CI_COMMIT_BRANCH", "main"),
            ("CI_COMMIT_SHA", "c0ffee"),
            ("CI_PIPELINE_URL", "https://woodpecker.example.org/repos/1/pipeline/1205"),
        ],
        Some("main"),
        "1205",
        "https://woodpecker.example.org/repos/1/pipeline/1205",
    ),
    (
        &[
            ("SEMAPHORE", "true"),
            ("SEMAPHORE_ORGANIZATION_URL", "https://octocat.semaphoreci.com"),
            ("SEMAPHORE_WORKFLOW_ID", "65c9bb1c"),
            ("SEMAPHORE_PIPELINE_ID", "ea3e6bba"),
            ("SEMAPHORE_GIT_BRANCH", "main"),
            ("SEMAPHORE_GIT_SHA", "c0ffee"),
        ],
        Some("main"),
        "65c9bb1c",
        "https://octocat.semaphoreci.com/workflows/65c9bb1c",
    ),
    (
        &[
            ("APPVEYOR", "True"),
            ("APPVEYOR_URL", "https://ci.appveyor.com"),
            ("APPVEYOR_ACCOUNT_NAME", "octocat"),
            ("APPVEYOR_PROJECT_SLUG", "shop"),
            ("APPVEYOR_BUILD_ID", "9871"),
            ("APPVEYOR_BUILD_NUMBER", "1205"),
            ("APPVEYOR_REPO_BRANCH", "main"),
            ("APPVEYOR_REPO_COMMIT", "c0ffee"),
        ],
        Some("main"),
        "1205",
        "https://ci.appveyor.com/project/octocat/shop/builds/9871",
    ),
    (
        &[
            ("TRAVIS", "true"),
            ("TRAVIS_BUILD_ID", "9871"),
            ("TRAVIS_BUILD_NUMBER", "1205"),
            ("TRAVIS_BRANCH", "main"),
            ("TRAVIS_COMMIT", "c0ffee"),
            ("TRAVIS_BUILD_WEB_URL", "https://app.travis-ci.com/octocat/shop/builds/9871"),
        ],
        Some("main"),
        "1205",
        "https://app.travis-ci.com/octocat/shop/builds/9871",
    ),
    (
        &[
            ("CIRRUS_CI", "true"),
            ("CIRRUS_BUILD_ID", "1205"),
            ("CIRRUS_TASK_NAME", "test"),
            ("CIRRUS_BRANCH", "main"),
            ("CIRRUS_CHANGE_IN_REPO", "c0ffee"),
        ],
        Some("main"),
        "1205",
        "https://cirrus-ci.com/build/1205",
    ),
    (
        &[
            ("BITRISE_IO", "true"),
            ("BITRISE_BUILD_SLUG", "9871"),
            ("BITRISE_BUILD_NUMBER", "1205"),
            ("BITRISE_GIT_BRANCH", "main"),
            ("BITRISE_GIT_COMMIT", "c0ffee"),
            ("BITRISE_BUILD_URL", "https://app.bitrise.io/build/9871"),
        ],
        Some("main"),
        "1205",
        "https://app.bitrise.io/build/9871",
    ),
    (
        &[
            ("GITHUB_ACTIONS", "true"),
            ("GITEA_ACTIONS", "true"),
            ("GITHUB_SERVER_URL", "https://git.example.org"),
            ("GITHUB_REPOSITORY", "octocat/shop"),
            ("GITHUB_RUN_ID", "9871"),
            ("GITHUB_RUN_NUMBER", "1205"),
            ("GITHUB_REF_NAME", "main"),
            ("GITHUB_SHA", "c0ffee"),
        ],
        Some("main"),
        "1205",
        "https://git.example.org/octocat/shop/actions/runs/1205",
    ),
];

#[test]
fn builds_have_a_key_a_branch_a_commit_a_number_and_a_link() {
    for (variables, branch, build, url) in BUILDS {
        let job = job(variables);
        assert!(job.key.is_some(), "{variables:?}");
        assert_eq!(job.branch.as_deref(), branch, "{variables:?}");
        assert_eq!(job.commit.as_deref(), Some("c0ffee"), "{variables:?}");
        assert_eq!(job.build.as_deref(), Some(build), "{variables:?}");
        assert_eq!(job.url.as_deref(), Some(url), "{variables:?}");
    }
}
