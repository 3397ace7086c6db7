//! CI systems, by the environment variables that they document.

/// A running job of a CI system.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Job {
    /// Key of the test run. It is the same in all shards, and another one in a repeated run.
    pub(crate) key: String,
    /// Name of this shard, and the number of shards.
    pub(crate) shard: Option<(String, i32)>,
    pub(crate) branch: Option<String>,
    pub(crate) commit: Option<String>,
    pub(crate) build: Option<String>,
    pub(crate) url: Option<String>,
    pub(crate) summary: Option<Summary>,
}

/// The way in which a CI system shows the summary of a job.
#[derive(Debug, PartialEq)]
pub(crate) enum Summary {
    /// A Markdown file to append to.
    File(String),
    /// A Markdown file in this directory, whose path is printed as a command.
    AzureCommand { directory: String },
}

/// Environment variables of a process. Empty ones count as unset.
pub(crate) struct Variables<'a>(pub(crate) &'a dyn Fn(&str) -> Option<String>);

/// Reads the variables of a CI system.
type Read = fn(&Variables<'_>) -> Option<Job>;

/// The CI systems with the variable that each of them sets.
const SYSTEMS: [(&str, Read); 6] = [
    ("GITHUB_ACTIONS", github),
    ("GITLAB_CI", gitlab),
    ("JENKINS_URL", jenkins),
    ("TF_BUILD", azure),
    ("BUILDKITE", buildkite),
    ("CIRCLECI", circleci),
];

impl Job {
    /// Returns the job that the process belongs to, if it is one of a known CI system.
    pub(crate) fn detect(variables: &Variables<'_>) -> Option<Self> {
        let (_, read) = SYSTEMS.iter().find(|(marker, _)| variables.get(marker).is_some())?;
        read(variables)
    }
}

impl Variables<'_> {
    fn get(&self, name: &str) -> Option<String> {
        (self.0)(name).filter(|value| !value.is_empty())
    }

    /// Returns the first variable that is set.
    fn any(&self, names: &[&str]) -> Option<String> {
        names.iter().find_map(|name| self.get(name))
    }

    /// Returns the values of all variables that are set, for a key.
    fn key(&self, system: &str, names: &[&str]) -> String {
        let values = names.iter().filter_map(|name| self.get(name));
        std::iter::once(system.to_owned()).chain(values).collect::<Vec<_>>().join("-")
    }

    /// Returns the shard, unless it is the only one.
    fn shard(&self, index: &str, total: &str) -> Option<(String, i32)> {
        let total = self.get(total)?.parse().ok().filter(|total| *total > 1)?;
        Some((self.get(index)?, total))
    }
}

/// <https://docs.github.com/en/actions/reference/workflows-and-actions/variables>. Jobs of a matrix
/// do not have their number in a variable, only in the context `strategy`.
fn github(variables: &Variables<'_>) -> Option<Job> {
    let run = variables.get("GITHUB_RUN_ID")?;
    let server = variables.get("GITHUB_SERVER_URL");
    let repository = variables.get("GITHUB_REPOSITORY");
    Some(Job {
        key: variables.key("github", &["GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT", "GITHUB_JOB"]),
        shard: None,
        branch: variables.any(&["GITHUB_HEAD_REF", "GITHUB_REF_NAME"]),
        commit: variables.get("GITHUB_SHA"),
        build: variables.get("GITHUB_RUN_NUMBER"),
        url: server
            .zip(repository)
            .map(|(server, repository)| format!("{server}/{repository}/actions/runs/{run}")),
        summary: variables.get("GITHUB_STEP_SUMMARY").map(Summary::File),
    })
}

/// <https://docs.gitlab.com/ci/variables/predefined_variables/>
fn gitlab(variables: &Variables<'_>) -> Option<Job> {
    let name = variables.get("CI_JOB_GROUP_NAME");
    let name = name.or_else(|| variables.get("CI_JOB_NAME").map(|name| without_shard(&name)));
    let pipeline = variables.key("gitlab", &["CI_PIPELINE_ID"]);
    Some(Job {
        key: format!("{pipeline}-{}", name?),
        shard: variables.shard("CI_NODE_INDEX", "CI_NODE_TOTAL"),
        branch: variables.any(&[
            "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME",
            "CI_COMMIT_BRANCH",
            "CI_COMMIT_REF_NAME",
        ]),
        commit: variables.get("CI_COMMIT_SHA"),
        build: variables.any(&["CI_PIPELINE_IID", "CI_PIPELINE_ID"]),
        url: variables.any(&["CI_PIPELINE_URL", "CI_JOB_URL"]),
        summary: None,
    })
}

/// Returns the name of a GitLab job without the part that differs between parallel jobs, as in
/// `test 1/4` and `test: [linux, 17]`.
fn without_shard(name: &str) -> String {
    let name = name.split_once(": [").map_or(name, |(name, _)| name);
    match name.rsplit_once(' ') {
        Some((rest, shard)) if shard.split_once('/').is_some_and(is_fraction) => rest.to_owned(),
        _ => name.to_owned(),
    }
}

fn is_fraction((index, total): (&str, &str)) -> bool {
    [index, total].iter().all(|part| part.parse::<u32>().is_ok())
}

/// <https://www.jenkins.io/doc/book/pipeline/jenkinsfile/#using-environment-variables>, and the
/// variables of its Git plugin.
fn jenkins(variables: &Variables<'_>) -> Option<Job> {
    variables.get("BUILD_TAG")?;
    let branch = variables.any(&["CHANGE_BRANCH", "BRANCH_NAME", "GIT_BRANCH"]);
    Some(Job {
        key: variables.key("jenkins", &["BUILD_TAG"]),
        shard: None,
        branch: branch.map(|branch| branch.trim_start_matches("origin/").to_owned()),
        commit: variables.get("GIT_COMMIT"),
        build: variables.get("BUILD_NUMBER"),
        url: variables.get("BUILD_URL"),
        summary: None,
    })
}

/// <https://learn.microsoft.com/en-us/azure/devops/pipelines/build/variables>
fn azure(variables: &Variables<'_>) -> Option<Job> {
    let build = variables.get("BUILD_BUILDID")?;
    let branch = variables.any(&["SYSTEM_PULLREQUEST_SOURCEBRANCH", "BUILD_SOURCEBRANCH"]);
    let collection = variables.any(&["SYSTEM_COLLECTIONURI", "SYSTEM_TEAMFOUNDATIONCOLLECTIONURI"]);
    let project = variables.get("SYSTEM_TEAMPROJECTID");
    let names = ["BUILD_BUILDID", "SYSTEM_STAGENAME", "SYSTEM_PHASENAME", "SYSTEM_STAGEATTEMPT"];
    Some(Job {
        key: variables.key("azure", &names),
        shard: variables.shard("SYSTEM_JOBPOSITIONINPHASE", "SYSTEM_TOTALJOBSINPHASE"),
        branch: branch.map(|branch| branch.trim_start_matches("refs/heads/").to_owned()),
        commit: variables.get("BUILD_SOURCEVERSION"),
        build: variables.get("BUILD_BUILDNUMBER"),
        url: collection.zip(project).map(|(collection, project)| {
            format!("{collection}{project}/_build/results?buildId={build}")
        }),
        summary: variables
            .get("AGENT_TEMPDIRECTORY")
            .map(|directory| Summary::AzureCommand { directory }),
    })
}

/// <https://buildkite.com/docs/pipelines/configure/environment-variables>
fn buildkite(variables: &Variables<'_>) -> Option<Job> {
    variables.get("BUILDKITE_BUILD_ID")?;
    Some(Job {
        key: variables.key("buildkite", &["BUILDKITE_BUILD_ID", "BUILDKITE_STEP_ID"]),
        shard: variables.shard("BUILDKITE_PARALLEL_JOB", "BUILDKITE_PARALLEL_JOB_COUNT"),
        branch: variables.get("BUILDKITE_BRANCH"),
        commit: variables.get("BUILDKITE_COMMIT"),
        build: variables.get("BUILDKITE_BUILD_NUMBER"),
        url: variables.get("BUILDKITE_BUILD_URL"),
        summary: None,
    })
}

/// <https://circleci.com/docs/reference/variables/>
fn circleci(variables: &Variables<'_>) -> Option<Job> {
    variables.get("CIRCLE_WORKFLOW_ID")?;
    Some(Job {
        key: variables.key("circleci", &["CIRCLE_WORKFLOW_ID", "CIRCLE_JOB"]),
        shard: variables.shard("CIRCLE_NODE_INDEX", "CIRCLE_NODE_TOTAL"),
        branch: variables.get("CIRCLE_BRANCH"),
        commit: variables.get("CIRCLE_SHA1"),
        build: variables.get("CIRCLE_BUILD_NUM"),
        url: variables.get("CIRCLE_BUILD_URL"),
        summary: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(variables: &[(&str, &str)]) -> Option<Job> {
        Job::detect(&Variables(&|name| {
            let value = variables.iter().find(|(known, _)| *known == name);
            value.map(|(_, value)| (*value).to_owned())
        }))
    }

    #[test]
    fn a_process_outside_of_a_ci_system_has_no_job() {
        assert_eq!(job(&[]), None);
        assert_eq!(job(&[("GITHUB_ACTIONS", "")]), None);
    }

    #[test]
    fn shards_of_a_job_have_one_key() {
        let shard = |index, name| {
            let job = job(&[
                ("GITLAB_CI", "true"),
                ("CI_PIPELINE_ID", "1205"),
                ("CI_JOB_NAME", name),
                ("CI_NODE_INDEX", index),
                ("CI_NODE_TOTAL", "2"),
            ]);
            job.unwrap()
        };

        let (first, second) = (shard("1", "end to end 1/2"), shard("2", "end to end 2/2"));

        assert_eq!(first.key, "gitlab-1205-end to end");
        assert_eq!(first.key, second.key);
        assert_eq!(second.shard, Some(("2".to_owned(), 2)));
        assert_eq!(shard("1", "test: [linux, 17]").key, "gitlab-1205-test");
    }

    #[test]
    fn a_repeated_run_has_another_key() {
        let attempt = |attempt| {
            let job = job(&[
                ("GITHUB_ACTIONS", "true"),
                ("GITHUB_RUN_ID", "7"),
                ("GITHUB_RUN_ATTEMPT", attempt),
                ("GITHUB_JOB", "test"),
            ]);
            job.unwrap().key
        };
        assert_eq!(attempt("1"), "github-7-1-test");
        assert_ne!(attempt("1"), attempt("2"));
    }

    #[test]
    fn the_only_job_of_a_run_is_not_a_shard() {
        let job = job(&[
            ("CIRCLECI", "true"),
            ("CIRCLE_WORKFLOW_ID", "w"),
            ("CIRCLE_NODE_INDEX", "0"),
            ("CIRCLE_NODE_TOTAL", "1"),
        ]);
        assert_eq!(job.unwrap().shard, None);
    }
}
