//! Paths of files, and of addresses without a host.

use crate::meaning::Word;

/// First folders of the paths of a machine. Other paths without an extension are routes.
const ROOTS: &[&str] = &[
    "tmp",
    "var",
    "home",
    "usr",
    "opt",
    "root",
    "builds",
    "private",
    "Users",
    "srv",
    "mnt",
    "etc",
    "proc",
    "workspace",
    "workspaces",
    "__w",
    "nix",
    "Volumes",
    "github",
];

/// Names of files, without extensions, that a project has in many folders.
const REPEATED: &[&str] =
    &["index", "mod", "page", "lib", "page", "route", "layout", "main", "__init__"];

/// Returns the meaning of a word that may be a path.
pub(crate) fn read(word: &str) -> Word<'_> {
    let path = without_position(word);
    let has_position = path.len() < word.len();
    if is_windows(path) || path.starts_with("~/") {
        return Word::File(name(path));
    }
    if let Some(rest) = path.strip_prefix('/') {
        return absolute(path, rest);
    }
    let is_local = path.starts_with("./") || path.starts_with("../");
    let is_file = (path.contains('/') || has_position) && has_extension(name(path));
    if is_local || is_file { Word::Relative(path) } else { Word::Plain }
}

fn absolute<'t>(path: &'t str, rest: &str) -> Word<'t> {
    let is_local = rest.split_once('/').is_some_and(|(root, _)| ROOTS.contains(&root));
    match name(path) {
        "" => Word::Plain,
        name if is_local || has_extension(name) => Word::File(name),
        _ => Word::Route(path),
    }
}

/// Returns whether a path starts with a drive or the name of a server.
fn is_windows(path: &str) -> bool {
    let drive = path.as_bytes();
    let has_drive = drive.len() > 2 && drive[0].is_ascii_alphabetic() && drive[1] == b':';
    has_drive && matches!(drive[2], b'\\' | b'/') || path.starts_with("\\\\")
}

/// Returns a path without the line and column after it.
pub(crate) fn without_position(path: &str) -> &str {
    let strip = |path| match str::rsplit_once(path, ':') {
        Some((rest, line)) if !line.is_empty() && line.bytes().all(|b| b.is_ascii_digit()) => rest,
        _ => path,
    };
    strip(strip(path))
}

/// Returns the last part of a path, or the last two if many files have the name.
pub(crate) fn name(path: &str) -> &str {
    let path = path.trim_end_matches(['/', '\\']);
    let part = |n| path.rmatch_indices(['/', '\\']).nth(n).map_or(0, |(at, _)| at + 1);
    let name = &path[part(0)..];
    let stem = name.split('.').next().unwrap_or_default();
    if REPEATED.contains(&stem) { &path[part(1)..] } else { name }
}

/// Returns whether a name ends with an extension such as `.py` or `.spec.ts`.
fn has_extension(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, extension)| {
        extension.starts_with(|char: char| char.is_ascii_alphabetic())
            && extension.len() <= 10
            && extension.chars().all(|char| char.is_ascii_alphanumeric())
    })
}
