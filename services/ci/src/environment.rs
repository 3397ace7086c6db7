//! CI systems, by the environment variables that they document.

mod files;
mod git;
mod key;
mod refine;
mod repository;
mod systems;
#[cfg(test)]
mod tests;
mod variables;

pub(crate) use self::variables::Variables;
use self::{key::Key, repository::owner_of_fork, systems::systems};

/// A running job of a CI system.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Job {
    /// Key of the test run. It is the same in all shards, and another one in a repeated run. Absent
    /// if the system does not name the run that the job is a part of.
    pub(crate) key: Option<String>,
    /// Key that all jobs of the run have, also those with other tests.
    pub(crate) key_of_run: Option<String>,
    /// Name of the job in the run; the same in all shards.
    pub(crate) name: Option<String>,
    pub(crate) shard: Option<Shard>,
    /// Whether another job with the key may repeat an earlier one, rather than be beside it.
    pub(crate) may_repeat: bool,
    /// Branch of the change, not the one that it is merged into. That of a fork begins with its owner.
    pub(crate) branch: Option<String>,
    /// Last commit of the branch, not one that merges it for the build.
    pub(crate) commit: Option<String>,
    pub(crate) build: Option<String>,
    pub(crate) url: Option<String>,
    pub(crate) summary: Option<Summary>,
    /// The host of the repository, if the job can write to it.
    pub(crate) host: Option<Host>,
}

/// One of several jobs that run parts of the tests.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shard {
    pub(crate) name: String,
    /// Number of shards, if the system names it.
    pub(crate) total: Option<i32>,
}

/// The way in which a CI system shows the summary of a job.
#[derive(Debug, PartialEq)]
pub(crate) enum Summary {
    /// A Markdown file to append to.
    File(String),
    /// A Markdown file in this directory, whose path is printed as a command.
    AzureCommand { directory: String },
}

/// The host of the repository, by its interface.
#[derive(Debug, PartialEq)]
pub(crate) enum Host {
    GitHub(GitHub),
    GitLab(GitLab),
}

impl Host {
    /// Returns the variable that usually has a token for the host.
    pub(crate) fn token(&self) -> &'static str {
        match self {
            Self::GitHub(_) => "GITHUB_TOKEN",
            Self::GitLab(_) => "GITLAB_TOKEN",
        }
    }
}

/// A commit on GitHub, and the pull request that it is for.
#[derive(Debug, PartialEq)]
pub(crate) struct GitHub {
    /// URL of the interface.
    pub(crate) api: String,
    pub(crate) repository: String,
    pub(crate) commit: String,
    /// Number of the pull request.
    pub(crate) request: Option<String>,
}

/// A commit on GitLab, and the merge request that it is for.
#[derive(Debug, PartialEq)]
pub(crate) struct GitLab {
    /// URL of the interface.
    pub(crate) api: String,
    pub(crate) project: String,
    /// The commit of the pipeline, which may be a merge.
    pub(crate) commit: String,
    pub(crate) pipeline: Option<String>,
    /// Project and number of the merge request.
    pub(crate) request: Option<(String, String)>,
}

/// A CI system. Its fields name variables: `A|B` is the first of two that is set, and `{A}/{B}` a text
/// with the values of both.
struct System {
    /// Beginning of its keys.
    name: &'static str,
    /// Variables of which the system sets at least one, here as `NAME` or `NAME=value`.
    markers: &'static [&'static str],
    /// Reads files that the system describes a job with, as further variables.
    load: fn(&Variables<'_>) -> Vec<(&'static str, String)>,
    /// URL or host of the system, and the repository or project in it.
    server: &'static str,
    repository: &'static str,
    /// The run; only the first part has to be set.
    run: &'static [&'static str],
    job: &'static [&'static str],
    /// Number of the shard, and number of shards.
    shard: (&'static str, &'static str),
    branch: &'static str,
    /// The tag, if the run is one of a tag: it has no branch then.
    tag: &'static str,
    /// The repository that a change comes from, and the one that it is for.
    fork: (&'static str, &'static str),
    commit: &'static str,
    build: &'static str,
    url: &'static str,
    may_repeat: bool,
    /// Corrects a job by rules of the system.
    refine: fn(&Variables<'_>, &mut Job, &mut Key),
}

impl Job {
    /// Returns the job that the process belongs to, if it is one of a known CI system.
    pub(crate) fn detect(variables: &Variables<'_>) -> Option<Self> {
        let is_set = |marker: &&str| variables.has(marker);
        systems().find(|system| system.markers.iter().any(is_set))?.read(variables)
    }
}

impl System {
    /// Returns a job of the system, if its variables name a run.
    fn read(&self, variables: &Variables<'_>) -> Option<Job> {
        let variables = &variables.with((self.load)(variables));
        variables.first(self.run[0])?;
        let mut key = Key::new(self.name);
        key.push_server(variables.first(self.server));
        for part in [self.repository].iter().chain(self.run) {
            key.push(variables.first(part));
        }
        let job = |part: &&str| variables.first(part).map(|name| without_shard(&name).to_owned());
        let parts: Vec<_> = self.job.iter().map(job).collect();
        for part in &parts {
            key.push_job(part.clone());
        }
        let name = parts.into_iter().flatten().collect::<Vec<_>>().join(" ");
        let mut job = Job {
            key: None,
            key_of_run: None,
            name: Some(name).filter(|name| !name.is_empty()),
            shard: self.shard(variables),
            may_repeat: self.may_repeat,
            branch: self.branch(variables),
            commit: variables.first(self.commit).filter(|commit| commit != "HEAD"),
            build: variables.first(self.build),
            url: variables.first(self.url),
            summary: None,
            host: None,
        };
        (self.refine)(variables, &mut job, &mut key);
        job.key = key.of_job();
        job.key_of_run = key.of_run();
        Some(job)
    }

    /// Returns the shard, unless it is the only one.
    fn shard(&self, variables: &Variables<'_>) -> Option<Shard> {
        let (index, total) = self.shard;
        let total = variables.first(total)?.parse().ok().filter(|total| *total > 1)?;
        Some(Shard { name: variables.first(index)?, total: Some(total) })
    }

    fn branch(&self, variables: &Variables<'_>) -> Option<String> {
        let branch =
            variables.first(self.branch).filter(|_| variables.first(self.tag).is_none())?;
        // A branch of a fork may be called like one of the repository.
        let (source, target) = (variables.first(self.fork.0), variables.first(self.fork.1));
        let owner = source.zip(target).and_then(|(from, to)| owner_of_fork(&from, &to));
        Some(branch_of_fork(owner, named(&branch)?))
    }
}

/// Returns the name of a branch that may be a reference of Git. Tags are not branches.
fn named(reference: &str) -> Option<&str> {
    let name = reference.strip_prefix("refs/heads/").unwrap_or(reference);
    (!name.starts_with("refs/tags/")).then_some(name)
}

/// Returns the name of a branch as `owner:name` if it belongs to a fork.
fn branch_of_fork(owner: Option<String>, branch: &str) -> String {
    match owner {
        Some(owner) if !branch.contains(':') => format!("{owner}:{branch}"),
        _ => branch.to_owned(),
    }
}

/// Returns the name of a job without the part that differs between parallel jobs, as in `test 1/4`,
/// `test: [linux, 17]` and `test-runInstance-2`.
fn without_shard(name: &str) -> &str {
    let name = name.split_once(": [").map_or(name, |(name, _)| name);
    let name = name.split_once("-runInstance-").map_or(name, |(name, _)| name);
    match name.rsplit_once(' ') {
        Some((rest, shard)) if shard.split_once('/').is_some_and(is_fraction) => rest,
        _ => name,
    }
}

fn is_fraction((index, total): (&str, &str)) -> bool {
    [index, total].iter().all(|part| part.parse::<u32>().is_ok())
}
