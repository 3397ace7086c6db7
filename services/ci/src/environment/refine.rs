//! Rules of single CI systems that their variables alone do not express.

use super::{
    GitHub, GitLab, Host, Job, Shard, Summary, Variables, branch_of_fork, key::Key,
    repository::owner_of_fork,
};

pub(super) fn nothing(_: &Variables<'_>, _: &mut Job, _: &mut Key) {}

pub(super) fn github(variables: &Variables<'_>, job: &mut Job, _: &mut Key) {
    if variables.has("GITHUB_REF_TYPE=tag") && !variables.has("event.branch") {
        job.branch = None;
    }
    // Runs of Gitea and Forgejo are linked by their number.
    if variables.has("GITEA_ACTIONS") || variables.has("FORGEJO_ACTIONS") {
        let by_number = "{GITHUB_SERVER_URL}/{GITHUB_REPOSITORY}/actions/runs/{GITHUB_RUN_NUMBER}";
        job.url = variables.first(by_number);
    }
    job.summary = variables.get("GITHUB_STEP_SUMMARY").map(Summary::File);
    job.host = github_host(variables, job.commit.clone()).map(Host::GitHub);
}

fn github_host(variables: &Variables<'_>, commit: Option<String>) -> Option<GitHub> {
    let merged = variables.get("GITHUB_REF_NAME");
    let merged = merged.and_then(|name| Some(name.strip_suffix("/merge")?.to_owned()));
    let merged = merged.filter(|number| number.parse::<u64>().is_ok());
    Some(GitHub {
        api: variables.get("GITHUB_API_URL")?,
        repository: variables.get("GITHUB_REPOSITORY")?,
        commit: commit?,
        request: variables.get("event.number").or(merged),
    })
}

pub(super) fn gitlab(variables: &Variables<'_>, job: &mut Job, _: &mut Key) {
    job.host = gitlab_host(variables).map(Host::GitLab);
}

fn gitlab_host(variables: &Variables<'_>) -> Option<GitLab> {
    let project = variables.get("CI_PROJECT_ID")?;
    let target = variables.first("CI_MERGE_REQUEST_PROJECT_ID|CI_PROJECT_ID");
    Some(GitLab {
        api: variables.get("CI_API_V4_URL")?,
        project,
        commit: variables.get("CI_COMMIT_SHA")?,
        pipeline: variables.get("CI_PIPELINE_ID"),
        request: target.zip(variables.get("CI_MERGE_REQUEST_IID")),
    })
}

pub(super) fn azure(variables: &Variables<'_>, job: &mut Job, _: &mut Key) {
    let source = variables.get("SYSTEM_PULLREQUEST_SOURCEREPOSITORYURI");
    if variables.get("SYSTEM_PULLREQUEST_ISFORK").is_some_and(|is| is.eq_ignore_ascii_case("true"))
    {
        let owner = source.and_then(|source| owner_of_fork(&source, ""));
        job.branch = job.branch.take().map(|branch| branch_of_fork(owner, &branch));
    }
    let directory = variables.get("AGENT_TEMPDIRECTORY");
    job.summary = directory.map(|directory| Summary::AzureCommand { directory });
}

pub(super) fn buildkite(variables: &Variables<'_>, job: &mut Job, _: &mut Key) {
    job.may_repeat = is_more_than(variables, "BUILDKITE_RETRY_COUNT", 0);
}

/// Steps that are not parallel differ only in their ids.
pub(super) fn bitbucket(variables: &Variables<'_>, job: &mut Job, key: &mut Key) {
    job.may_repeat = is_more_than(variables, "BITBUCKET_STEP_RUN_NUMBER", 1);
    if job.shard.is_none() {
        job.name = variables.get("BITBUCKET_STEP_UUID");
        key.push_job(job.name.clone());
    }
}

/// A build in a batch does not know the id of the batch.
pub(super) fn codebuild(variables: &Variables<'_>, job: &mut Job, key: &mut Key) {
    let trigger = variables.get("CODEBUILD_WEBHOOK_TRIGGER");
    let branch = trigger.and_then(|trigger| Some(trigger.strip_prefix("branch/")?.to_owned()));
    job.branch = job.branch.take().or(branch);
    if let Some(name) = variables.get("CODEBUILD_BATCH_BUILD_IDENTIFIER") {
        job.shard = Some(Shard { name, total: None });
        key.clear();
    }
}

/// Batches of parallel tests are builds of their own, without the id of a common one.
pub(super) fn teamcity(_: &Variables<'_>, job: &mut Job, key: &mut Key) {
    if job.shard.is_some() {
        key.clear();
    }
}

/// Cells of a multi-configuration project are builds of their own, with the axes as the last part of their
/// names: `shop/OS=linux,JDK=21`.
pub(super) fn jenkins(variables: &Variables<'_>, job: &mut Job, key: &mut Key) {
    let name = variables.get("JOB_NAME");
    if let Some((project, cell)) = name.as_deref().and_then(|name| name.rsplit_once('/'))
        && cell.split(',').all(|axis| axis.contains('='))
    {
        job.shard = Some(Shard { name: cell.to_owned(), total: None });
        *key = Key::new("jenkins");
        key.push_server(variables.first("JENKINS_URL|HUDSON_URL"));
        key.push(Some(project.to_owned()));
        key.push(variables.get("BUILD_NUMBER"));
    }
    let branch = job.branch.take();
    let fork = variables.get("CHANGE_FORK");
    let owner = fork.map(|fork| fork.split('/').next().unwrap_or_default().to_owned());
    let branch = branch.filter(|branch| branch != "detached");
    job.branch = branch
        .map(|branch| branch_of_fork(owner, branch.strip_prefix("origin/").unwrap_or(&branch)));
}

fn is_more_than(variables: &Variables<'_>, name: &str, least: u32) -> bool {
    variables
        .get(name)
        .and_then(|count| count.parse::<u32>().ok())
        .is_some_and(|count| count > least)
}
