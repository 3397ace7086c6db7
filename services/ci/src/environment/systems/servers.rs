//! CI systems that build repositories of several hosts.

use super::{NONE, System, files, refine};

pub(super) const SYSTEMS: [System; 18] = [
    // <https://woodpecker-ci.org/docs/usage/environment>
    System {
        name: "woodpecker",
        markers: &["CI=woodpecker", "CI_SYSTEM_NAME=woodpecker"],
        server: "CI_SYSTEM_URL|CI_SYSTEM_HOST",
        repository: "CI_REPO",
        run: &["CI_PIPELINE_NUMBER"],
        job: &["CI_WORKFLOW_NAME"],
        branch: "CI_COMMIT_SOURCE_BRANCH|CI_COMMIT_BRANCH",
        tag: "CI_COMMIT_TAG",
        commit: "CI_COMMIT_SHA",
        build: "CI_PIPELINE_NUMBER",
        url: "CI_PIPELINE_URL|CI_PIPELINE_FORGE_URL",
        ..NONE
    },
    // <https://buildkite.com/docs/pipelines/configure/environment-variables>
    System {
        name: "buildkite",
        markers: &["BUILDKITE"],
        repository: "{BUILDKITE_ORGANIZATION_SLUG}/{BUILDKITE_PIPELINE_SLUG}",
        run: &["BUILDKITE_BUILD_ID"],
        job: &["BUILDKITE_STEP_ID|BUILDKITE_STEP_KEY"],
        shard: ("BUILDKITE_PARALLEL_JOB", "BUILDKITE_PARALLEL_JOB_COUNT"),
        branch: "BUILDKITE_BRANCH",
        tag: "BUILDKITE_TAG",
        fork: ("BUILDKITE_PULL_REQUEST_REPO", "BUILDKITE_REPO"),
        commit: "BUILDKITE_COMMIT",
        build: "BUILDKITE_BUILD_NUMBER",
        url: "BUILDKITE_BUILD_URL",
        refine: refine::buildkite,
        ..NONE
    },
    // <https://circleci.com/docs/reference/variables/>
    System {
        name: "circleci",
        markers: &["CIRCLECI"],
        repository: "{CIRCLE_PROJECT_USERNAME}/{CIRCLE_PROJECT_REPONAME}",
        run: &["CIRCLE_WORKFLOW_ID"],
        job: &["CIRCLE_JOB"],
        shard: ("CIRCLE_NODE_INDEX", "CIRCLE_NODE_TOTAL"),
        branch: "CIRCLE_BRANCH",
        tag: "CIRCLE_TAG",
        commit: "CIRCLE_SHA1",
        build: "CIRCLE_BUILD_NUM",
        url: "CIRCLE_BUILD_URL",
        ..NONE
    },
    // <https://docs.travis-ci.com/user/environment-variables/>
    System {
        name: "travis",
        markers: &["TRAVIS", "TRAVIS_BUILD_ID"],
        server: "TRAVIS_BUILD_WEB_URL",
        repository: "TRAVIS_REPO_SLUG",
        run: &["TRAVIS_BUILD_ID|TRAVIS_BUILD_NUMBER"],
        job: &["TRAVIS_BUILD_STAGE_NAME"],
        branch: "TRAVIS_PULL_REQUEST_BRANCH|TRAVIS_BRANCH",
        tag: "TRAVIS_TAG",
        fork: ("TRAVIS_PULL_REQUEST_SLUG", "TRAVIS_REPO_SLUG"),
        commit: "TRAVIS_PULL_REQUEST_SHA|TRAVIS_COMMIT",
        build: "TRAVIS_BUILD_NUMBER",
        url: "TRAVIS_BUILD_WEB_URL",
        ..NONE
    },
    // <https://www.appveyor.com/docs/environment-variables/>
    System {
        name: "appveyor",
        markers: &["APPVEYOR", "APPVEYOR_BUILD_ID"],
        server: "APPVEYOR_URL",
        repository: "{APPVEYOR_ACCOUNT_NAME}/{APPVEYOR_PROJECT_SLUG}|APPVEYOR_REPO_NAME",
        run: &["APPVEYOR_BUILD_ID|APPVEYOR_BUILD_NUMBER"],
        branch: "APPVEYOR_PULL_REQUEST_HEAD_REPO_BRANCH|APPVEYOR_REPO_BRANCH",
        tag: "APPVEYOR_REPO_TAG_NAME",
        fork: ("APPVEYOR_PULL_REQUEST_HEAD_REPO_NAME", "APPVEYOR_REPO_NAME"),
        commit: "APPVEYOR_PULL_REQUEST_HEAD_COMMIT|APPVEYOR_REPO_COMMIT",
        build: "APPVEYOR_BUILD_NUMBER",
        url: "{APPVEYOR_URL}/project/{APPVEYOR_ACCOUNT_NAME}/{APPVEYOR_PROJECT_SLUG}/builds/\
              {APPVEYOR_BUILD_ID}",
        ..NONE
    },
    // <https://docs.drone.io/pipeline/environment/reference/>
    System {
        name: "drone",
        markers: &["DRONE"],
        server: "DRONE_SYSTEM_HOST|DRONE_SYSTEM_HOSTNAME",
        repository: "DRONE_REPO",
        run: &["DRONE_BUILD_NUMBER"],
        job: &["DRONE_STAGE_NAME"],
        branch: "DRONE_SOURCE_BRANCH|DRONE_COMMIT_BRANCH|DRONE_BRANCH",
        tag: "DRONE_TAG",
        commit: "DRONE_COMMIT_SHA|DRONE_COMMIT",
        build: "DRONE_BUILD_NUMBER",
        url: "DRONE_BUILD_LINK",
        ..NONE
    },
    // <https://docs.semaphore.io/reference/env-vars>
    System {
        name: "semaphore",
        markers: &["SEMAPHORE", "SEMAPHORE_WORKFLOW_ID"],
        server: "SEMAPHORE_ORGANIZATION_URL",
        repository: "SEMAPHORE_GIT_REPO_SLUG|SEMAPHORE_PROJECT_NAME",
        run: &["SEMAPHORE_PIPELINE_ID|SEMAPHORE_WORKFLOW_ID"],
        job: &["SEMAPHORE_BLOCK_NAME", "SEMAPHORE_JOB_NAME"],
        shard: ("SEMAPHORE_JOB_INDEX", "SEMAPHORE_JOB_COUNT"),
        // Workflows of pull requests have the target as SEMAPHORE_GIT_BRANCH, and a merge.
        branch: "SEMAPHORE_GIT_PR_BRANCH|SEMAPHORE_GIT_WORKING_BRANCH|SEMAPHORE_GIT_BRANCH",
        tag: "SEMAPHORE_GIT_TAG_NAME",
        fork: ("SEMAPHORE_GIT_PR_SLUG", "SEMAPHORE_GIT_REPO_SLUG"),
        commit: "SEMAPHORE_GIT_PR_SHA|SEMAPHORE_GIT_SHA",
        build: "SEMAPHORE_WORKFLOW_NUMBER|SEMAPHORE_WORKFLOW_ID",
        url: "{SEMAPHORE_ORGANIZATION_URL}/workflows/{SEMAPHORE_WORKFLOW_ID}",
        ..NONE
    },
    // <https://cirrus-ci.org/guide/writing-tasks/#environment-variables>. CI_NODE_TOTAL counts all tasks
    // of the build, not only those with tests.
    System {
        name: "cirrus",
        markers: &["CIRRUS_CI"],
        repository: "CIRRUS_REPO_FULL_NAME",
        run: &["CIRRUS_BUILD_ID"],
        job: &["CIRRUS_TASK_NAME"],
        branch: "CIRRUS_BRANCH",
        tag: "CIRRUS_TAG",
        commit: "CIRRUS_CHANGE_IN_REPO",
        build: "CIRRUS_BUILD_ID",
        url: "https://cirrus-ci.com/build/{CIRRUS_BUILD_ID}",
        ..NONE
    },
    // <https://docs.aws.amazon.com/codebuild/latest/userguide/build-env-ref-env-vars.html>
    System {
        name: "codebuild",
        markers: &["CODEBUILD_BUILD_ARN", "CODEBUILD_BUILD_ID"],
        repository: "CODEBUILD_SOURCE_REPO_URL",
        run: &["CODEBUILD_BUILD_ARN|CODEBUILD_BUILD_ID"],
        branch: "CODEBUILD_WEBHOOK_HEAD_REF",
        commit: "CODEBUILD_RESOLVED_SOURCE_VERSION",
        build: "CODEBUILD_BUILD_NUMBER",
        url: "CODEBUILD_BUILD_URL|CODEBUILD_PUBLIC_BUILD_URL",
        refine: refine::codebuild,
        ..NONE
    },
    // <https://www.jetbrains.com/help/teamcity/predefined-build-parameters.html>
    System {
        name: "teamcity",
        markers: &["TEAMCITY_VERSION"],
        load: files::teamcity,
        server: "teamcity.serverUrl|BUILD_URL",
        repository: "{TEAMCITY_PROJECT_NAME}/{TEAMCITY_BUILDCONF_NAME}|TEAMCITY_BUILDCONF_NAME",
        run: &["teamcity.build.id|BUILD_NUMBER"],
        shard: (
            "teamcity.build.parallelTests.currentBatch",
            "teamcity.build.parallelTests.totalBatches",
        ),
        branch: "teamcity.pullRequest.source.branch|teamcity.build.branch",
        commit: "BUILD_VCS_NUMBER|build.vcs.number",
        build: "BUILD_NUMBER",
        url: "BUILD_URL|build.url|{teamcity.serverUrl}/viewLog.html?buildId={teamcity.build.id}",
        refine: refine::teamcity,
        ..NONE
    },
    // <https://confluence.atlassian.com/bamboo/bamboo-variables-289277087.html>
    System {
        name: "bamboo",
        markers: &["bamboo_buildResultKey", "bamboo_planKey", "bamboo_buildNumber"],
        server: "bamboo_buildResultsUrl|bamboo_resultsUrl",
        repository: "bamboo_planKey",
        run: &["bamboo_buildNumber"],
        job: &["bamboo_shortJobKey"],
        branch: "bamboo_repository_pr_sourceBranch|bamboo_planRepository_branchName|\
                 bamboo_planRepository_branch|bamboo_repository_branch_name",
        commit: "bamboo_planRepository_revision|bamboo_repository_revision_number",
        build: "bamboo_buildNumber",
        url: "bamboo_buildResultsUrl|bamboo_resultsUrl",
        may_repeat: true,
        ..NONE
    },
    // <https://docs.gocd.org/current/faq/dev_use_current_revision_in_build.html>
    System {
        name: "gocd",
        markers: &["GO_PIPELINE_NAME", "GO_PIPELINE_LABEL"],
        server: "GO_SERVER_URL",
        repository: "GO_PIPELINE_NAME",
        run: &["GO_PIPELINE_COUNTER|GO_PIPELINE_LABEL"],
        job: &["GO_STAGE_NAME", "GO_STAGE_COUNTER", "GO_JOB_NAME"],
        shard: ("GO_JOB_RUN_INDEX", "GO_JOB_RUN_COUNT"),
        commit: "GO_REVISION",
        build: "GO_PIPELINE_LABEL|GO_PIPELINE_COUNTER",
        url: "{GO_SERVER_URL}/pipelines/{GO_PIPELINE_NAME}/{GO_PIPELINE_COUNTER}/{GO_STAGE_NAME}/\
              {GO_STAGE_COUNTER}",
        ..NONE
    },
    // <https://devcenter.bitrise.io/en/references/available-environment-variables.html>
    System {
        name: "bitrise",
        markers: &["BITRISE_IO"],
        repository: "BITRISE_APP_SLUG",
        run: &["BITRISEIO_PIPELINE_ID|BITRISE_BUILD_SLUG"],
        shard: ("BITRISE_IO_PARALLEL_INDEX", "BITRISE_IO_PARALLEL_TOTAL"),
        branch: "BITRISE_GIT_BRANCH",
        tag: "BITRISE_GIT_TAG",
        commit: "BITRISE_GIT_COMMIT",
        build: "BITRISE_BUILD_NUMBER",
        url: "BITRISE_BUILD_URL",
        ..NONE
    },
    // <https://codefresh.io/docs/docs/pipelines/variables/>
    System {
        name: "codefresh",
        markers: &["CF_BUILD_ID"],
        repository: "{CF_REPO_OWNER}/{CF_REPO_NAME}",
        run: &["CF_BUILD_ID"],
        branch: "CF_BRANCH",
        commit: "CF_REVISION",
        build: "CF_BUILD_ID",
        url: "CF_BUILD_URL",
        ..NONE
    },
    // <https://buddy.works/docs/pipelines/environment-variables>
    System {
        name: "buddy",
        markers: &["BUDDY_EXECUTION_ID"],
        server: "BUDDY_EXECUTION_URL",
        repository: "BUDDY_REPO_SLUG|BUDDY_PROJECT_NAME",
        run: &["BUDDY_EXECUTION_ID", "BUDDY_PIPELINE_ID"],
        branch: "BUDDY_EXECUTION_PULL_REQUEST_HEAD_BRANCH|BUDDY_EXECUTION_BRANCH",
        tag: "BUDDY_EXECUTION_TAG",
        commit: "BUDDY_EXECUTION_REVISION",
        build: "BUDDY_EXECUTION_ID",
        url: "BUDDY_EXECUTION_URL",
        ..NONE
    },
    // Pods of Argo Workflows. They do not know their cluster and the repository.
    System {
        name: "argo",
        markers: &["ARGO_NODE_ID", "ARGO_TEMPLATE", "ARGO_WORKFLOW_NAME"],
        load: files::argo,
        run: &["ARGO_WORKFLOW_UID|ARGO_WORKFLOW_NAME|argo.workflow"],
        job: &["argo.template"],
        ..NONE
    },
    // <https://docs.prow.k8s.io/docs/jobs/#job-environment-variables>
    System {
        name: "prow",
        markers: &["PROW_JOB_ID"],
        repository: "{REPO_OWNER}/{REPO_NAME}",
        run: &["PROW_JOB_ID"],
        branch: "PULL_HEAD_REF|PULL_BASE_REF",
        commit: "PULL_PULL_SHA|PULL_BASE_SHA",
        build: "BUILD_ID",
        ..NONE
    },
    // <https://www.jenkins.io/doc/book/pipeline/jenkinsfile/#using-environment-variables>, the variables of
    // its branch sources, and those of its plugins for pull requests of GitHub, GitLab and Bitbucket.
    System {
        name: "jenkins",
        markers: &["JENKINS_URL", "HUDSON_URL", "JENKINS_HOME"],
        load: files::jenkins,
        server: "JENKINS_URL|HUDSON_URL",
        repository: "JOB_NAME|BUILD_TAG",
        run: &["BUILD_NUMBER|BUILD_TAG"],
        branch: "CHANGE_BRANCH|ghprbSourceBranch|GITHUB_PR_SOURCE_BRANCH|gitlabSourceBranch|\
                 BITBUCKET_SOURCE_BRANCH|BRANCH_NAME|GIT_BRANCH",
        tag: "TAG_NAME",
        commit: "ghprbActualCommit|GITHUB_PR_HEAD_SHA|gitlabMergeRequestLastCommit|git.head|GIT_COMMIT",
        build: "BUILD_NUMBER",
        url: "BUILD_URL",
        refine: refine::jenkins,
        ..NONE
    },
];
