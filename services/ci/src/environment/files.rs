//! Files in which CI systems describe a job.

use std::{
    fs::{self, File},
    io::BufReader,
};

use serde_json::Value;

use super::{Variables, repository::owner_of_fork};

/// Variables of a job that come from its files, with their names.
type More = Vec<(&'static str, String)>;

/// Reads nothing.
pub(super) fn none(_: &Variables<'_>) -> More {
    More::new()
}

/// Reads the event that a workflow of GitHub Actions runs for. In events of pull requests, `GITHUB_SHA` is
/// a commit that merges the request, and in `workflow_run` and `pull_request_target` one of the target.
pub(super) fn github(variables: &Variables<'_>) -> More {
    let Some(path) = variables.get("GITHUB_EVENT_PATH") else { return More::new() };
    let file = File::open(&path).map_err(anyhow::Error::from);
    let event = file.and_then(|file| Ok(serde_json::from_reader(BufReader::new(file))?));
    let event: Value = event.unwrap_or_else(|error| {
        tracing::warn!(
            "cannot read the event {path}, so the commit may be one of a merge: {error}"
        );
        Value::Null
    });
    let text = |path: &str| event.pointer(path).and_then(Value::as_str).map(str::to_owned);
    let (head, repository, target) = match event.get("workflow_run") {
        Some(_) => ("/workflow_run/head_", "/workflow_run/head_repository", "/repository"),
        None => ("/pull_request/head/", "/pull_request/head/repo", "/pull_request/base/repo"),
    };
    let branch = text(&format!("{head}ref")).or_else(|| text(&format!("{head}branch")));
    let full_name = |repository: &str| text(&format!("{repository}/full_name"));
    let fork = match event.pointer(repository) {
        // The fork was deleted.
        Some(Value::Null) => text("/pull_request/head/user/login"),
        _ => full_name(repository)
            .zip(full_name(target))
            .and_then(|(from, to)| owner_of_fork(&from, &to)),
    };
    let branch = branch.map(|branch| super::branch_of_fork(fork, &branch));
    let commit = text(&format!("{head}sha")).or_else(|| text("/merge_group/head_sha"));
    let numbers = ["/pull_request/number", "/workflow_run/pull_requests/0/number"];
    let number = numbers.iter().find_map(|path| event.pointer(path)?.as_u64());
    let number = number.map(|number| number.to_string());
    let more = [("event.branch", branch), ("event.commit", commit), ("event.number", number)];
    more.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// Names of the parameters of a build of `TeamCity` that are read.
const TEAMCITY: [&str; 8] = [
    "teamcity.serverUrl",
    "teamcity.build.id",
    "teamcity.build.branch",
    "teamcity.pullRequest.source.branch",
    "teamcity.build.parallelTests.currentBatch",
    "teamcity.build.parallelTests.totalBatches",
    "build.vcs.number",
    "build.url",
];

/// Reads the files of properties of a build of `TeamCity`. The one that a variable names has the path of that
/// with the other parameters.
pub(super) fn teamcity(variables: &Variables<'_>) -> More {
    let path = variables.get("TEAMCITY_BUILD_PROPERTIES_FILE");
    let system = path.map(|path| properties(&path)).unwrap_or_default();
    let is_path = |(name, _): &&(String, String)| name == "teamcity.configuration.properties.file";
    let others = system.iter().find(is_path).map(|(_, path)| properties(path));
    let all = || system.iter().chain(others.iter().flatten());
    let value = |name: &'static str| {
        let (_, value) = all().find(|(known, _)| known == name)?;
        Some((name, value.clone()))
    };
    // A branch in angle brackets stands for one that has no name.
    let read = TEAMCITY.into_iter().filter_map(value);
    read.filter(|(_, value)| !value.starts_with('<')).collect()
}

/// Returns the properties in a file of Java's format.
fn properties(path: &str) -> Vec<(String, String)> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| {
        tracing::warn!("cannot read the parameters of the build in {path}: {error}");
        String::new()
    });
    let lines = text.lines().filter(|line| !line.starts_with(['#', '!']));
    lines.filter_map(property).collect()
}

/// Returns the name and the value of a line. A backslash escapes the character after it.
fn property(line: &str) -> Option<(String, String)> {
    let (mut name, mut value, mut chars) = (None, String::new(), line.chars());
    while let Some(char) = chars.next() {
        match char {
            '\\' => value.extend(chars.next()),
            '=' | ':' if name.is_none() => name = Some(std::mem::take(&mut value)),
            char => value.push(char),
        }
    }
    Some((name?.trim().to_owned(), value.trim().to_owned()))
}

/// Reads the template that a pod of an Argo workflow runs, and the name of the workflow. The name of a node
/// is that of its workflow with a number.
pub(super) fn argo(variables: &Variables<'_>) -> More {
    let template = variables.get("ARGO_TEMPLATE");
    let template = template.and_then(|text| serde_json::from_str::<Value>(&text).ok());
    let template = template.and_then(|template| Some(template.get("name")?.as_str()?.to_owned()));
    let node = variables.get("ARGO_NODE_ID");
    let workflow = node.map(|node| match node.rsplit_once('-') {
        Some((workflow, number)) if number.parse::<u32>().is_ok() => workflow.to_owned(),
        _ => node,
    });
    let more = [("argo.template", template), ("argo.workflow", workflow)];
    more.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// Reads the commit of a change that Jenkins has merged with its target.
pub(super) fn jenkins(variables: &Variables<'_>) -> More {
    let commit = variables.get("CHANGE_ID").and_then(|_| variables.get("GIT_COMMIT"));
    let head = commit.and_then(|commit| super::git::merged_by_jenkins(&commit));
    head.map(|head| ("git.head", head)).into_iter().collect()
}
