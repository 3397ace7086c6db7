//! The rules for projects.

use assay_proto::{Fault, catalog::ProjectInput};
use assay_records::Check;
use http::Uri;

/// Maximum number of days that results are kept, if not forever: a century.
const LONGEST_RETENTION: i32 = 36_525;

/// Maximum length of the name of a branch, in characters.
const LONGEST_BRANCH: usize = 250;

/// Maximum length of the URL of tickets, in characters.
const LONGEST_URL: usize = 1000;

/// The name of a ticket in the URL of tickets.
const NAME_OF_TICKET: &str = "{ticket}";

/// Default branch of a project whose creator names none.
const DEFAULT_BRANCH: &str = "main";

/// Returns a new project with its defaults, which is active.
pub(super) fn new(input: ProjectInput) -> ProjectInput {
    ProjectInput {
        archived: false,
        default_branch: input.default_branch.or_else(|| Some(DEFAULT_BRANCH.to_owned())),
        ..input
    }
}

pub(super) fn valid(input: ProjectInput) -> Result<ProjectInput, Fault> {
    let mut check = Check::default();
    check.texts(&input);
    check.name("Name", &input.name);
    if input.retention_in_days.is_some_and(|days| !(1..=LONGEST_RETENTION).contains(&days)) {
        check.refuse("RetentionInDays", format!("must be 1 to {LONGEST_RETENTION}, or null"));
    }
    match &input.default_branch {
        Some(branch) => check.line("DefaultBranch", branch, 1..=LONGEST_BRANCH),
        None => check.refuse("DefaultBranch", "must not be null"),
    }
    check.line("TicketUrl", &input.ticket_url, 0..=LONGEST_URL);
    if !input.ticket_url.is_empty() && !is_url_of_tickets(&input.ticket_url) {
        let example = "https://jira.example.com/browse/{ticket}";
        check.refuse("TicketUrl", format!("must be empty or a URL such as {example}"));
    }
    check.done().map(|()| input)
}

/// Whether a text is the URL of a page that has the name of a ticket in its path, query or fragment.
fn is_url_of_tickets(text: &str) -> bool {
    let (page, fragment) = text.split_once('#').unwrap_or((text, ""));
    let Ok(url) = page.replace(NAME_OF_TICKET, "1").parse::<Uri>() else { return false };
    let is_web = matches!(url.scheme_str(), Some("http" | "https"));
    let host = page.split('/').nth(2).unwrap_or_default();
    let has_name = page.contains(NAME_OF_TICKET) || fragment.contains(NAME_OF_TICKET);
    is_web && has_name && !host.contains(NAME_OF_TICKET) && !host.contains('@')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_of_tickets_is_that_of_a_page_with_their_names() {
        for right in [
            "https://jira.example.com/browse/{ticket}",
            "http://tracker:8080/show?id={ticket}&view=all",
            "https://tracker.example.com/app#/tickets/{ticket}",
        ] {
            assert!(is_url_of_tickets(right), "{right}");
        }
        for wrong in [
            "https://jira.example.com/browse/",
            "https://{ticket}.example.com/",
            "https://user:pass@jira.example.com/{ticket}",
            "javascript:alert({ticket})",
            "ftp://files.example.com/{ticket}",
            "/browse/{ticket}",
            "https:///{ticket}",
            "https://jira.example.com/a b/{ticket}",
        ] {
            assert!(!is_url_of_tickets(wrong), "{wrong}");
        }
    }
}
