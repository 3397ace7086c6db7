//! Rules for the names and media types of files.

use assay_proto::{Fault, catalog::UploadFileHead};
use assay_records::Check;
use assay_storage::parse_sha256;

/// Maximum length of a name, in characters.
const LONGEST_NAME: usize = 255;

/// Maximum length of a media type, in bytes.
const LONGEST_TYPE: usize = 200;

/// The media types that browsers may show. None of them can contain scripts.
const HARMLESS: [&str; 6] =
    ["image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp", "text/plain"];

/// The media type of all other files.
const ANYTHING: &str = "application/octet-stream";

/// Checks the name and the media type of an upload. Returns the SHA-256 that its client expects.
pub(super) fn valid(head: &UploadFileHead) -> Result<Option<[u8; 32]>, Fault> {
    let mut check = Check::default();
    if let Some(problem) = problem_of_name(&head.name) {
        check.refuse("Name", problem);
    }
    let is_type = head.content_type.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if head.content_type.len() > LONGEST_TYPE || !is_type {
        let problem = format!("must have at most {LONGEST_TYPE} ASCII characters");
        check.refuse("Content-Type", problem);
    }
    check.done()?;
    if head.sha256.is_empty() {
        return Ok(None);
    }
    parse_sha256("Digest", &head.sha256).map(Some)
}

/// Returns the rule that a name violates, if any. Names are shown and become names of files on the machines
/// of others, so they have no path, and nothing that hides a part of them.
fn problem_of_name(name: &str) -> Option<String> {
    let hides = |char: char| {
        char.is_control()
            || matches!(char, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if name.trim().is_empty() {
        return Some(
            "is required: send it in X-File-Name, in Upload-Metadata or in the form".to_owned(),
        );
    }
    if name.chars().count() > LONGEST_NAME {
        return Some(format!("must have at most {LONGEST_NAME} characters"));
    }
    let is_path = name.contains(['/', '\\']) || matches!(name, "." | "..");
    if is_path || name.trim() != name || name.chars().any(hides) {
        let problem = "must be the name of a file: without a path, control characters, and spaces at \
                       its ends";
        return Some(problem.to_owned());
    }
    None
}

/// Returns the content type of a download.
pub(super) fn served_as(content_type: &str) -> String {
    let media_type = content_type.split(';').next().unwrap_or_default().trim();
    let known = HARMLESS.into_iter().find(|harmless| media_type.eq_ignore_ascii_case(harmless));
    match known {
        Some("text/plain") => "text/plain; charset=utf-8".to_owned(),
        Some(known) => known.to_owned(),
        None => ANYTHING.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_neither_paths_nor_misleading() {
        for name in
            ["a", "web shop (2).msi", "Prüfplan.pdf", ".gitignore", "a..b", &"ä".repeat(255)]
        {
            assert_eq!(problem_of_name(name), None, "{name}");
        }
        for wrong in [
            "",
            " ",
            ".",
            "..",
            "../x",
            "a/b",
            "C:\\fakepath\\a.txt",
            " a",
            "a\n",
            "a\0",
            "invoice\u{202e}fdp.exe",
            &"x".repeat(256),
        ] {
            assert!(problem_of_name(wrong).is_some(), "{wrong:?} was accepted");
        }
    }
}
