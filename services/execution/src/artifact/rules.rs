//! Rules for the names and content types of artifacts.

use assay_proto::{Fault, LeaseId};

/// Maximum length of a name or a content type, in bytes.
const LONGEST: usize = 200;

/// The content types that browsers may show. None of them can contain scripts.
const HARMLESS: [&str; 7] =
    ["image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp", "text/plain", "video/webm"];

/// The content type of all other files.
const ANYTHING: &str = "application/octet-stream";

/// Name of the artifact that the log of a completed lease becomes.
pub(crate) const LIVE_LOG: &str = "live.log";

/// Returns the name of the artifact that the log of another lease becomes.
pub(crate) fn live_log_of(lease: LeaseId) -> String {
    format!("live-{lease}.log")
}

/// Whether a text can be the name of an artifact. A name is never a URL, a path or a hidden file.
pub(crate) fn is_name(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=LONGEST).contains(&text.len()) && text.bytes().all(fits) && !text.starts_with('.')
}

pub(super) fn check_name(name: &str) -> Result<(), Fault> {
    if is_name(name) {
        return Ok(());
    }
    let problem = format!(
        "must have 1 to {LONGEST} letters, digits, `.`, `_` and `-`, and not begin with `.`"
    );
    Err(Fault::invalid("name", problem))
}

/// Fails if the log of a lease would replace an artifact with this name.
pub(super) fn check_not_reserved(lease: LeaseId, name: &str) -> Result<(), Fault> {
    if name != LIVE_LOG && name != live_log_of(lease) {
        return Ok(());
    }
    let problem = "is reserved for the log that Assay stores for the lease; choose another name";
    Err(Fault::invalid("name", problem))
}

pub(super) fn check_content_type(text: &str) -> Result<(), Fault> {
    if text.len() <= LONGEST && text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return Ok(());
    }
    Err(Fault::invalid("Content-Type", format!("must have at most {LONGEST} ASCII characters")))
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
    fn names_are_neither_links_nor_paths() {
        for name in ["a", "shot-1.png", "LOG_2.txt", "a..b", &"x".repeat(LONGEST)] {
            assert!(is_name(name), "{name}");
        }
        for wrong in [
            "",
            ".",
            "..",
            ".hidden",
            "../x",
            "a/b",
            "a\\b",
            "a b",
            "ä",
            "a\0",
            "a:b",
            "%2e",
            "http://x",
            &"x".repeat(LONGEST + 1),
        ] {
            assert!(!is_name(wrong), "{wrong:?} was accepted");
        }
    }

    #[test]
    fn names_of_logs_are_reserved() {
        let lease = LeaseId::new();
        for reserved in [LIVE_LOG.to_owned(), live_log_of(lease)] {
            assert!(check_not_reserved(lease, &reserved).is_err(), "{reserved}");
        }
        for free in ["run.log".to_owned(), live_log_of(LeaseId::new())] {
            assert!(check_not_reserved(lease, &free).is_ok(), "{free}");
        }
    }

    #[test]
    fn active_content_is_served_as_binary() {
        assert_eq!(served_as("IMAGE/PNG; x=y"), "image/png");
        assert_eq!(served_as("text/plain"), "text/plain; charset=utf-8");
        for active in ["text/html", "image/svg+xml", "application/javascript", "text/xml", "", "x"]
        {
            assert_eq!(served_as(active), ANYTHING);
        }
    }
}
