//! Jobs that run parts of the tests at the same time.

use super::*;

#[test]
fn shards_of_a_job_have_one_key_and_different_names() {
    let systems: [&[(&str, [&str; 2])]; 9] = [
        &[
            ("GITLAB_CI", ["true"; 2]),
            ("CI_PIPELINE_ID", ["1205"; 2]),
            ("CI_JOB_NAME", ["end to end 1/2", "end to end 2/2"]),
            ("CI_NODE_INDEX", ["1", "2"]),
            ("CI_NODE_TOTAL", ["2"; 2]),
        ],
        &[
            ("GITLAB_CI", ["true"; 2]),
            ("CI_PIPELINE_ID", ["1205"; 2]),
            ("CI_JOB_NAME", ["test: [linux, 17]", "test: [linux, 21]"]),
            ("CI_NODE_INDEX", ["1", "2"]),
            ("CI_NODE_TOTAL", ["2"; 2]),
        ],
        &[
            ("CIRCLECI", ["true"; 2]),
            ("CIRCLE_WORKFLOW_ID", ["w"; 2]),
            ("CIRCLE_JOB", ["test"; 2]),
            ("CIRCLE_NODE_INDEX", ["0", "1"]),
            ("CIRCLE_NODE_TOTAL", ["2"; 2]),
        ],
        &[
            ("BUILDKITE", ["true"; 2]),
            ("BUILDKITE_BUILD_ID", ["b"; 2]),
            ("BUILDKITE_STEP_ID", ["s"; 2]),
            ("BUILDKITE_PARALLEL_JOB", ["0", "1"]),
            ("BUILDKITE_PARALLEL_JOB_COUNT", ["2"; 2]),
        ],
        &[
            ("TF_BUILD", ["True"; 2]),
            ("BUILD_BUILDID", ["7"; 2]),
            ("SYSTEM_PHASENAME", ["test"; 2]),
            ("SYSTEM_JOBPOSITIONINPHASE", ["1", "2"]),
            ("SYSTEM_TOTALJOBSINPHASE", ["2"; 2]),
        ],
        &[
            ("BITBUCKET_BUILD_NUMBER", ["7"; 2]),
            ("BITBUCKET_STEP_UUID", ["{1}", "{2}"]),
            ("BITBUCKET_PARALLEL_STEP", ["0", "1"]),
            ("BITBUCKET_PARALLEL_STEP_COUNT", ["2"; 2]),
        ],
        &[
            ("SEMAPHORE", ["true"; 2]),
            ("SEMAPHORE_PIPELINE_ID", ["p"; 2]),
            ("SEMAPHORE_JOB_NAME", ["Tests - 1/2", "Tests - 2/2"]),
            ("SEMAPHORE_JOB_INDEX", ["1", "2"]),
            ("SEMAPHORE_JOB_COUNT", ["2"; 2]),
        ],
        &[
            ("GO_PIPELINE_NAME", ["shop"; 2]),
            ("GO_PIPELINE_COUNTER", ["7"; 2]),
            ("GO_JOB_NAME", ["test-runInstance-1", "test-runInstance-2"]),
            ("GO_JOB_RUN_INDEX", ["1", "2"]),
            ("GO_JOB_RUN_COUNT", ["2"; 2]),
        ],
        &[
            ("BITRISE_IO", ["true"; 2]),
            ("BITRISEIO_PIPELINE_ID", ["p"; 2]),
            ("BITRISE_BUILD_SLUG", ["1", "2"]),
            ("BITRISE_IO_PARALLEL_INDEX", ["0", "1"]),
            ("BITRISE_IO_PARALLEL_TOTAL", ["2"; 2]),
        ],
    ];
    for system in systems {
        let [first, second] = [0, 1].map(|nr| {
            let variables: Vec<_> =
                system.iter().map(|(name, values)| (*name, values[nr])).collect();
            job(&variables)
        });
        assert!(first.key.is_some() && first.key == second.key, "{system:?}");
        let [first, second] = [first, second].map(|job| job.shard.expect("a shard"));
        assert_ne!(first.name, second.name, "{system:?}");
        assert_eq!((first.total, second.total), (Some(2), Some(2)), "{system:?}");
    }
}

#[test]
fn the_only_job_of_a_run_is_not_a_shard() {
    let only = job(&[
        ("CIRCLECI", "true"),
        ("CIRCLE_WORKFLOW_ID", "w"),
        ("CIRCLE_NODE_INDEX", "0"),
        ("CIRCLE_NODE_TOTAL", "1"),
    ]);
    assert_eq!(only.shard, None);
}

#[test]
fn cells_of_a_jenkins_matrix_have_the_key_of_their_project() {
    let cell = |name| {
        job(&[
            ("JENKINS_URL", "https://ci.example.org/"),
            ("JOB_NAME", name),
            ("BUILD_NUMBER", "7"),
        ])
    };
    let (linux, macos) = (cell("shop/OS=linux,JDK=21"), cell("shop/OS=macos,JDK=21"));
    assert_eq!(linux.key, macos.key);
    assert_eq!(linux.key, cell("shop").key);
    assert_eq!(linux.shard, Some(Shard { name: "OS=linux,JDK=21".to_owned(), total: None }));
    assert_eq!(cell("folder/shop").shard, None);
}

#[test]
fn builds_in_a_batch_have_no_key_of_the_batch() {
    let build = job(&[
        ("CODEBUILD_BUILD_ARN", "arn:aws:codebuild:eu-west-1:1:build/shop:b1e6661e"),
        ("CODEBUILD_BATCH_BUILD_IDENTIFIER", "linux_small"),
    ]);
    assert_eq!(build.key, None);
    assert_eq!(build.shard, Some(Shard { name: "linux_small".to_owned(), total: None }));
}

#[test]
fn only_a_repeated_job_may_open_a_second_execution() {
    let may_repeat = |variables: &[(&str, &str)]| job(variables).may_repeat;
    let buildkite = |count| {
        may_repeat(&[
            ("BUILDKITE", "true"),
            ("BUILDKITE_BUILD_ID", "b"),
            ("BUILDKITE_RETRY_COUNT", count),
        ])
    };
    assert!(buildkite("1") && !buildkite("0"));
    let bitbucket =
        |run| may_repeat(&[("BITBUCKET_BUILD_NUMBER", "7"), ("BITBUCKET_STEP_RUN_NUMBER", run)]);
    assert!(bitbucket("2") && !bitbucket("1"));
    assert!(may_repeat(&[("GITLAB_CI", "true"), ("CI_PIPELINE_ID", "7"), ("CI_JOB_NAME", "test")]));
    assert!(!may_repeat(&[("GITHUB_ACTIONS", "true"), ("GITHUB_RUN_ID", "7")]));
}
