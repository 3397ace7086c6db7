//! The systems of `docs/ci/systems.md`.

use super::{COMMIT, SINGLE, System};

pub(super) const SYSTEMS: [System; 12] = [
    System {
        heading: "Bitbucket Pipelines",
        variables: &[
            ("BITBUCKET_BUILD_NUMBER", "1205"),
            ("BITBUCKET_REPO_FULL_NAME", "octocat/shop"),
            ("BITBUCKET_BRANCH", "main"),
            ("BITBUCKET_COMMIT", COMMIT),
            ("BITBUCKET_STEP_UUID", "{9871}"),
        ],
        shards: &[
            ("BITBUCKET_PARALLEL_STEP", ["0", "1"]),
            ("BITBUCKET_PARALLEL_STEP_COUNT", ["2", "2"]),
        ],
        key: "bitbucket::octocat/shop:1205",
        url: "https://bitbucket.org/octocat/shop/pipelines/results/1205",
        ..SINGLE
    },
    System {
        heading: "TeamCity",
        variables: &[
            ("TEAMCITY_VERSION", "2026.1"),
            ("TEAMCITY_PROJECT_NAME", "Shop"),
            ("TEAMCITY_BUILDCONF_NAME", "Tests"),
            ("BUILD_NUMBER", "1205"),
            ("BUILD_VCS_NUMBER", COMMIT),
            ("BUILD_URL", "https://teamcity.example.org/build/9871"),
        ],
        key: "teamcity:teamcity.example.org/build/9871:Shop/Tests:1205",
        url: "https://teamcity.example.org/build/9871",
        branch: "",
        ..SINGLE
    },
    System {
        heading: "Bamboo",
        variables: &[
            ("bamboo_planKey", "SHOP-TEST"),
            ("bamboo_shortJobKey", "JOB1"),
            ("bamboo_buildNumber", "1205"),
            ("bamboo_planRepository_branchName", "main"),
            ("bamboo_planRepository_revision", COMMIT),
            ("bamboo_buildResultsUrl", "https://bamboo.example.org/browse/SHOP-TEST-JOB1-1205"),
        ],
        key: "bamboo:bamboo.example.org/browse/SHOP-TEST-JOB1-1205:SHOP-TEST:1205:JOB1",
        url: "https://bamboo.example.org/browse/SHOP-TEST-JOB1-1205",
        ..SINGLE
    },
    System {
        heading: "AWS CodeBuild",
        variables: &[
            ("CODEBUILD_BUILD_ID", "shop:b1e6661e"),
            ("CODEBUILD_BUILD_NUMBER", "1205"),
            ("CODEBUILD_WEBHOOK_HEAD_REF", "refs/heads/main"),
            ("CODEBUILD_RESOLVED_SOURCE_VERSION", COMMIT),
            ("CODEBUILD_BUILD_URL", "https://console.aws.amazon.com/codebuild/1205"),
        ],
        key: "codebuild:::shop%3Ab1e6661e",
        url: "https://console.aws.amazon.com/codebuild/1205",
        ..SINGLE
    },
    System {
        heading: "Drone",
        variables: &[
            ("DRONE", "true"),
            ("DRONE_SYSTEM_HOST", "drone.example.org"),
            ("DRONE_REPO", "octocat/shop"),
            ("DRONE_BUILD_NUMBER", "1205"),
            ("DRONE_STAGE_NAME", "tests"),
            ("DRONE_COMMIT_BRANCH", "main"),
            ("DRONE_COMMIT_SHA", COMMIT),
            ("DRONE_BUILD_LINK", "https://drone.example.org/octocat/shop/1205"),
        ],
        key: "drone:drone.example.org:octocat/shop:1205:tests",
        url: "https://drone.example.org/octocat/shop/1205",
        ..SINGLE
    },
    System {
        heading: "Woodpecker",
        variables: &[
            ("CI", "woodpecker"),
            ("CI_SYSTEM_URL", "https://woodpecker.example.org"),
            ("CI_REPO", "octocat/shop"),
            ("CI_PIPELINE_NUMBER", "1205"),
            ("CI_WORKFLOW_NAME", "tests"),
            ("CI_COMMIT_BRANCH", "main"),
            ("CI_COMMIT_SHA", COMMIT),
            ("CI_PIPELINE_URL", "https://woodpecker.example.org/repos/1/pipeline/1205"),
        ],
        key: "woodpecker:woodpecker.example.org:octocat/shop:1205:tests",
        url: "https://woodpecker.example.org/repos/1/pipeline/1205",
        ..SINGLE
    },
    System {
        heading: "Tekton",
        expressions: &[
            ("$(params.run)", ["7c1e", "7c1e"]),
            ("$(params.branch)", ["main", "main"]),
            ("$(params.commit)", [COMMIT, COMMIT]),
        ],
        key: "7c1e",
        build: "",
        ..SINGLE
    },
    System {
        heading: "Argo Workflows",
        variables: &[("ARGO_NODE_ID", "shop-x7k2p"), ("ARGO_TEMPLATE", r#"{"name": "tests"}"#)],
        expressions: &[("{{workflow.uid}}", ["7c1e", "7c1e"])],
        key: "7c1e",
        branch: "",
        commit: "",
        build: "",
        ..SINGLE
    },
    System {
        heading: "Semaphore",
        variables: &[
            ("SEMAPHORE", "true"),
            ("SEMAPHORE_ORGANIZATION_URL", "https://octocat.semaphoreci.com"),
            ("SEMAPHORE_GIT_REPO_SLUG", "octocat/shop"),
            ("SEMAPHORE_WORKFLOW_ID", "1205"),
            ("SEMAPHORE_PIPELINE_ID", "ea3e"),
            ("SEMAPHORE_GIT_BRANCH", "main"),
            ("SEMAPHORE_GIT_SHA", COMMIT),
        ],
        shards: &[("SEMAPHORE_JOB_INDEX", ["1", "2"]), ("SEMAPHORE_JOB_COUNT", ["2", "2"])],
        key: "semaphore:octocat.semaphoreci.com:octocat/shop:ea3e",
        url: "https://octocat.semaphoreci.com/workflows/1205",
        ..SINGLE
    },
    System {
        heading: "AppVeyor",
        variables: &[
            ("APPVEYOR", "True"),
            ("APPVEYOR_URL", "https://ci.appveyor.com"),
            ("APPVEYOR_ACCOUNT_NAME", "octocat"),
            ("APPVEYOR_PROJECT_SLUG", "shop"),
            ("APPVEYOR_BUILD_ID", "9871"),
            ("APPVEYOR_BUILD_NUMBER", "1205"),
            ("APPVEYOR_REPO_BRANCH", "main"),
            ("APPVEYOR_REPO_COMMIT", COMMIT),
        ],
        key: "appveyor:ci.appveyor.com:octocat/shop:9871",
        url: "https://ci.appveyor.com/project/octocat/shop/builds/9871",
        ..SINGLE
    },
    System {
        heading: "Travis CI",
        variables: &[
            ("TRAVIS", "true"),
            ("TRAVIS_REPO_SLUG", "octocat/shop"),
            ("TRAVIS_BUILD_ID", "9871"),
            ("TRAVIS_BUILD_NUMBER", "1205"),
            ("TRAVIS_BUILD_STAGE_NAME", "Test"),
            ("TRAVIS_BRANCH", "main"),
            ("TRAVIS_COMMIT", COMMIT),
            ("TRAVIS_BUILD_WEB_URL", "https://app.travis-ci.com/octocat/shop/builds/9871"),
        ],
        key: "travis:app.travis-ci.com/octocat/shop/builds/9871:octocat/shop:9871:Test",
        url: "https://app.travis-ci.com/octocat/shop/builds/9871",
        ..SINGLE
    },
    System {
        heading: "Cirrus CI",
        variables: &[
            ("CIRRUS_CI", "true"),
            ("CIRRUS_REPO_FULL_NAME", "octocat/shop"),
            ("CIRRUS_BUILD_ID", "1205"),
            ("CIRRUS_TASK_NAME", "Tests"),
            ("CIRRUS_BRANCH", "main"),
            ("CIRRUS_CHANGE_IN_REPO", COMMIT),
        ],
        key: "cirrus::octocat/shop:1205:Tests",
        url: "https://cirrus-ci.com/build/1205",
        ..SINGLE
    },
];
