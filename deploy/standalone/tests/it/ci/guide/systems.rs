//! The CI systems of the guide, with the variables that they document.

mod further;

/// A CI system: its heading in the guide, and the variables of two jobs of one run.
pub(super) struct System {
    pub(super) heading: &'static str,
    pub(super) variables: &'static [(&'static str, &'static str)],
    /// Variables with different values in the two jobs, which the gate does not have.
    pub(super) shards: &'static [(&'static str, [&'static str; 2])],
    /// Expressions that the system replaces, and their values in the two jobs.
    pub(super) expressions: &'static [(&'static str, [&'static str; 2])],
    /// Fields of the execution; an empty text if it has none.
    pub(super) key: &'static str,
    pub(super) url: &'static str,
    pub(super) branch: &'static str,
    pub(super) commit: &'static str,
    pub(super) build: &'static str,
}

/// A system whose example has no shards, and no expressions.
const SINGLE: System = System {
    heading: "",
    variables: &[],
    shards: &[],
    expressions: &[],
    key: "",
    url: "",
    branch: "main",
    commit: COMMIT,
    build: "1205",
};

const COMMIT: &str = "ffac537e6cbbf934b08745a378932722df287a53";

/// Returns the system with a heading.
pub(super) fn system(heading: &str) -> &'static System {
    let mut systems = SYSTEMS.iter().chain(&further::SYSTEMS);
    systems.find(|system| system.heading == heading).expect(heading)
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
            ("GITHUB_SHA", COMMIT),
            ("GITHUB_SERVER_URL", "https://github.com"),
            ("GITHUB_REPOSITORY", "octocat/shop"),
            ("GITHUB_STEP_SUMMARY", "summary.md"),
        ],
        expressions: &[
            ("${{ matrix.shard }}", ["1", "2"]),
            ("${{ strategy.job-index }}", ["0", "1"]),
        ],
        key: "github:github.com:octocat/shop:1658821493:1",
        url: "https://github.com/octocat/shop/actions/runs/1658821493",
        ..SINGLE
    },
    System {
        heading: "GitLab CI",
        variables: &[
            ("GITLAB_CI", "true"),
            ("CI_SERVER_URL", "https://gitlab.com"),
            ("CI_PROJECT_PATH", "octocat/shop"),
            ("CI_PIPELINE_ID", "9871"),
            ("CI_PIPELINE_IID", "1205"),
            ("CI_PIPELINE_URL", "https://gitlab.com/octocat/shop/-/pipelines/9871"),
            ("CI_COMMIT_BRANCH", "main"),
            ("CI_COMMIT_REF_NAME", "main"),
            ("CI_COMMIT_SHA", COMMIT),
            ("CI_JOB_NAME", "gate"),
        ],
        shards: &[("CI_NODE_INDEX", ["1", "2"]), ("CI_NODE_TOTAL", ["2", "2"])],
        key: "gitlab:gitlab.com:octocat/shop:9871:gate",
        url: "https://gitlab.com/octocat/shop/-/pipelines/9871",
        ..SINGLE
    },
    System {
        heading: "Jenkins",
        variables: &[
            ("JENKINS_URL", "https://jenkins.example.org/"),
            ("JOB_NAME", "shop"),
            ("BUILD_TAG", "jenkins-shop-1205"),
            ("BUILD_NUMBER", "1205"),
            ("BUILD_URL", "https://jenkins.example.org/job/shop/1205/"),
            ("GIT_BRANCH", "origin/main"),
            ("GIT_COMMIT", COMMIT),
        ],
        key: "jenkins:jenkins.example.org:shop:1205",
        url: "https://jenkins.example.org/job/shop/1205/",
        ..SINGLE
    },
    System {
        heading: "Azure Pipelines",
        variables: &[
            ("TF_BUILD", "True"),
            ("BUILD_BUILDID", "9871"),
            ("BUILD_BUILDNUMBER", "1205"),
            ("BUILD_SOURCEBRANCH", "refs/heads/main"),
            ("BUILD_SOURCEVERSION", COMMIT),
            ("SYSTEM_COLLECTIONURI", "https://dev.azure.com/octocat/"),
            ("SYSTEM_TEAMPROJECTID", "6ce954b1"),
            ("SYSTEM_STAGENAME", "__default"),
            ("SYSTEM_STAGEATTEMPT", "1"),
            ("SYSTEM_PHASENAME", "test"),
            ("AGENT_TEMPDIRECTORY", "."),
        ],
        shards: &[
            ("SYSTEM_JOBPOSITIONINPHASE", ["1", "2"]),
            ("SYSTEM_TOTALJOBSINPHASE", ["2", "2"]),
        ],
        expressions: &[
            ("$(System.JobPositionInPhase)", ["1", "2"]),
            ("$(System.TotalJobsInPhase)", ["2", "2"]),
        ],
        key: "azure:dev.azure.com/octocat:6ce954b1:9871",
        url: "https://dev.azure.com/octocat/6ce954b1/_build/results?buildId=9871",
        ..SINGLE
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
            ("BUILDKITE_COMMIT", COMMIT),
            ("BUILDKITE_ORGANIZATION_SLUG", "octocat"),
            ("BUILDKITE_PIPELINE_SLUG", "shop"),
        ],
        shards: &[
            ("BUILDKITE_PARALLEL_JOB", ["0", "1"]),
            ("BUILDKITE_PARALLEL_JOB_COUNT", ["2", "2"]),
        ],
        expressions: &[("$$", ["$", "$"])],
        key: "buildkite::octocat/shop:4735ba57",
        url: "https://buildkite.com/octocat/shop/builds/1205",
        ..SINGLE
    },
    System {
        heading: "CircleCI",
        variables: &[
            ("CIRCLECI", "true"),
            ("CIRCLE_PROJECT_USERNAME", "octocat"),
            ("CIRCLE_PROJECT_REPONAME", "shop"),
            ("CIRCLE_WORKFLOW_ID", "e8f4"),
            ("CIRCLE_JOB", "test"),
            ("CIRCLE_BUILD_NUM", "1205"),
            ("CIRCLE_BUILD_URL", "https://circleci.com/gh/octocat/shop/1205"),
            ("CIRCLE_BRANCH", "main"),
            ("CIRCLE_SHA1", COMMIT),
        ],
        shards: &[("CIRCLE_NODE_INDEX", ["0", "1"]), ("CIRCLE_NODE_TOTAL", ["2", "2"])],
        key: "circleci::octocat/shop:e8f4",
        url: "https://circleci.com/gh/octocat/shop/1205",
        ..SINGLE
    },
];
