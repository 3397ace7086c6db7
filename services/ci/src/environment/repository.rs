//! Names of repositories.

/// Returns the owner of the repository that a change comes from, if it is not the one that the change is
/// for. Repositories are `owner/name` or URLs.
pub(super) fn owner_of_fork(from: &str, to: &str) -> Option<String> {
    let (from, to) = (path(from), path(to));
    if from.eq_ignore_ascii_case(to) {
        return None;
    }
    let owner = from.rsplit_once('/').map_or(from, |(owner, _)| owner);
    Some(owner.to_owned())
}

/// Returns the path of a repository: `octocat/shop` of `git@github.com:octocat/shop.git`.
fn path(repository: &str) -> &str {
    let path = match repository.split_once("://") {
        Some((_, address)) => address.split_once('/').map_or(address, |(_, path)| path),
        None => match repository.split_once(':') {
            Some((host, path)) if host.contains('@') => path,
            _ => repository,
        },
    };
    let path = path.trim_matches('/');
    path.strip_suffix(".git").unwrap_or(path)
}
