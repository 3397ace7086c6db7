//! What artifacts are called, and what they may say they are.

use assay_proto::Fault;

/// How long a name may be.
const LONGEST: usize = 200;

/// What is shown in a browser as what it says it is. Nothing here can run.
const HARMLESS: [&str; 7] =
    ["image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp", "text/plain", "video/webm"];

/// What everything else is called.
const ANYTHING: &str = "application/octet-stream";

/// Whether a text can be the name of an artifact. It is never a link, a path, or hidden.
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

pub(super) fn check_content_type(text: &str) -> Result<(), Fault> {
    if text.len() <= LONGEST && text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return Ok(());
    }
    Err(Fault::invalid("Content-Type", format!("must have at most {LONGEST} ASCII characters")))
}

/// What a file is served as.
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
    fn names_cannot_lead_anywhere() {
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
            assert!(!is_name(wrong), "{wrong:?} was taken");
        }
    }

    #[test]
    fn what_could_run_is_never_served_as_itself() {
        assert_eq!(served_as("IMAGE/PNG; x=y"), "image/png");
        assert_eq!(served_as("text/plain"), "text/plain; charset=utf-8");
        for active in ["text/html", "image/svg+xml", "application/javascript", "text/xml", "", "x"]
        {
            assert_eq!(served_as(active), ANYTHING);
        }
    }
}
