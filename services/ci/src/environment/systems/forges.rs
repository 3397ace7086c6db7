//! CI systems that belong to a host of repositories.

use super::{NONE, System, files, refine};

pub(super) const SYSTEMS: [System; 4] = [
    // <https://docs.github.com/en/actions/reference/workflows-and-actions/variables>. Jobs of a matrix do
    // not have their number in a variable, only in the context `strategy`.
    System {
        name: "github",
        markers: &["GITHUB_ACTIONS"],
        load: files::github,
        server: "GITHUB_SERVER_URL",
        repository: "GITHUB_REPOSITORY",
        run: &["GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT"],
        job: &["GITHUB_JOB"],
        branch: "event.branch|GITHUB_HEAD_REF|GITHUB_REF_NAME",
        commit: "event.commit|GITHUB_SHA",
        build: "GITHUB_RUN_NUMBER",
        url: "{GITHUB_SERVER_URL}/{GITHUB_REPOSITORY}/actions/runs/{GITHUB_RUN_ID}",
        refine: refine::github,
        ..NONE
    },
    // <https://docs.gitlab.com/ci/variables/predefined_variables/>
    System {
        name: "gitlab",
        markers: &["GITLAB_CI"],
        server: "CI_SERVER_URL|CI_SERVER_FQDN|CI_SERVER_HOST",
        repository: "CI_PROJECT_PATH|CI_PROJECT_ID",
        run: &["CI_PIPELINE_ID"],
        job: &["CI_JOB_GROUP_NAME|CI_JOB_NAME"],
        shard: ("CI_NODE_INDEX", "CI_NODE_TOTAL"),
        branch: "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME|CI_EXTERNAL_PULL_REQUEST_SOURCE_BRANCH_NAME|\
                 CI_COMMIT_BRANCH|CI_COMMIT_REF_NAME",
        tag: "CI_COMMIT_TAG",
        fork: (
            "CI_MERGE_REQUEST_SOURCE_PROJECT_PATH|CI_EXTERNAL_PULL_REQUEST_SOURCE_REPOSITORY",
            "CI_MERGE_REQUEST_PROJECT_PATH|CI_EXTERNAL_PULL_REQUEST_TARGET_REPOSITORY",
        ),
        // Pipelines for merged results and merge trains have a merge as CI_COMMIT_SHA.
        commit: "CI_MERGE_REQUEST_SOURCE_BRANCH_SHA|CI_EXTERNAL_PULL_REQUEST_SOURCE_BRANCH_SHA|\
                 CI_COMMIT_SHA",
        build: "CI_PIPELINE_IID|CI_PIPELINE_ID",
        url: "CI_PIPELINE_URL|CI_JOB_URL",
        may_repeat: true,
        refine: refine::gitlab,
        ..NONE
    },
    // <https://learn.microsoft.com/en-us/azure/devops/pipelines/build/variables>
    System {
        name: "azure",
        markers: &["TF_BUILD", "SYSTEM_TEAMFOUNDATIONCOLLECTIONURI"],
        server: "SYSTEM_COLLECTIONURI|SYSTEM_TEAMFOUNDATIONCOLLECTIONURI",
        repository: "SYSTEM_TEAMPROJECTID|SYSTEM_TEAMPROJECT",
        run: &["BUILD_BUILDID"],
        job: &["SYSTEM_STAGENAME", "SYSTEM_PHASENAME", "SYSTEM_STAGEATTEMPT"],
        shard: ("SYSTEM_JOBPOSITIONINPHASE", "SYSTEM_TOTALJOBSINPHASE"),
        branch: "SYSTEM_PULLREQUEST_SOURCEBRANCH|BUILD_SOURCEBRANCH",
        commit: "SYSTEM_PULLREQUEST_SOURCECOMMITID|BUILD_SOURCEVERSION",
        build: "BUILD_BUILDNUMBER",
        url: "{SYSTEM_COLLECTIONURI}{SYSTEM_TEAMPROJECTID}/_build/results?buildId={BUILD_BUILDID}|\
              {SYSTEM_TEAMFOUNDATIONCOLLECTIONURI}{SYSTEM_TEAMPROJECTID}/_build/results?buildId={BUILD_BUILDID}",
        refine: refine::azure,
        ..NONE
    },
    // <https://support.atlassian.com/bitbucket-cloud/docs/variables-and-secrets/>
    System {
        name: "bitbucket",
        markers: &["BITBUCKET_PIPELINE_UUID", "BITBUCKET_BUILD_NUMBER"],
        repository: "BITBUCKET_REPO_FULL_NAME|BITBUCKET_REPO_UUID",
        run: &["BITBUCKET_BUILD_NUMBER|BITBUCKET_PIPELINE_UUID"],
        shard: ("BITBUCKET_PARALLEL_STEP", "BITBUCKET_PARALLEL_STEP_COUNT"),
        branch: "BITBUCKET_BRANCH",
        tag: "BITBUCKET_TAG",
        commit: "BITBUCKET_COMMIT",
        build: "BITBUCKET_BUILD_NUMBER",
        url: "https://bitbucket.org/{BITBUCKET_REPO_FULL_NAME}/pipelines/results/{BITBUCKET_BUILD_NUMBER}",
        refine: refine::bitbucket,
        ..NONE
    },
];
