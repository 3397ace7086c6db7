//! Commits of the repository that a job has checked out.

use std::{env, fs::File, io::Read as _, path::Path};

use flate2::read::ZlibDecoder;

/// Maximum size of a commit, in bytes.
const LARGEST: u64 = 64 << 10;

/// Returns the commit that Jenkins has merged its target into, if `commit` is such a merge. It is a new
/// one, so it is in a file of its own, below `.git` in the current folder or above.
pub(super) fn merged_by_jenkins(commit: &str) -> Option<String> {
    let current = env::current_dir().ok().filter(|_| is_id(commit))?;
    let object = Path::new(".git/objects").join(&commit[..2]).join(&commit[2..]);
    let file = current.ancestors().find_map(|folder| File::open(folder.join(&object)).ok())?;
    let mut text = Vec::new();
    ZlibDecoder::new(file).take(LARGEST).read_to_end(&mut text).ok()?;
    head_of_merge(&String::from_utf8_lossy(&text))
}

fn is_id(commit: &str) -> bool {
    commit.len() >= 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns the first parent of a commit with two, if Jenkins is its committer. Jenkins checks the change
/// out and merges the target into it.
fn head_of_merge(commit: &str) -> Option<String> {
    let (header, _) = commit.split_once("\n\n")?;
    let of_jenkins = |line: &str| line.starts_with("committer Jenkins <nobody@nowhere>");
    let parents: Vec<_> = header.lines().filter_map(|line| line.strip_prefix("parent ")).collect();
    match parents[..] {
        [head, _] if is_id(head) && header.lines().any(of_jenkins) => Some(head.to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_of_jenkins_leads_to_the_commit_of_the_branch() {
        let commit = |parents: &str, committer: &str| {
            format!(
                "commit 200\0tree 4b825dc6\n{parents}author A <a@example.org> 1 +0000\n\
                 committer {committer} 1 +0000\n\nparent c\n"
            )
        };
        let (head, target) = ("a".repeat(40), "b".repeat(40));
        let two = format!("parent {head}\nparent {target}\n");
        let jenkins = "Jenkins <nobody@nowhere>";
        assert_eq!(head_of_merge(&commit(&two, jenkins)), Some(head.clone()));
        assert_eq!(head_of_merge(&commit(&two, "A <a@example.org>")), None, "of the author");
        assert_eq!(head_of_merge(&commit(&format!("parent {head}\n"), jenkins)), None);
        assert_eq!(head_of_merge(&commit("parent x\nparent y\n", jenkins)), None);
    }
}
