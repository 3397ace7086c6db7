//! Subjects of messages on NATS.

use std::fmt;

use assay_proto::CustomerId;

/// Maximum number of characters in a token of a subject.
const LONGEST_TOKEN: usize = 64;

/// Token before the noun of an event that a client has created.
pub(crate) const CLIENT: &str = "client";

/// The subject of an event: `assay.<service>.<customer>.<noun>.<action>`, or, if a client has created it,
/// `assay.<service>.<customer>.client.<noun>.<action>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject<'a> {
    pub service: &'a str,
    pub customer: CustomerId,
    /// Whether a client has created the event.
    pub of_client: bool,
    pub noun: &'a str,
    pub action: &'a str,
}

impl<'a> Subject<'a> {
    /// Parses the subject of a message; `None` if it is not that of an event.
    pub fn parse(subject: &'a str) -> Option<Self> {
        let mut tokens = subject.strip_prefix("assay.")?.split('.');
        let mut next = || tokens.next().filter(|token| !token.is_empty());
        let (service, customer, first, second) = (next()?, next()?, next()?, next()?);
        let customer = CustomerId::from_path(customer).ok()?;
        let (of_client, noun, action) = match tokens.next() {
            None => (false, first, second),
            Some(action) if first == CLIENT && !action.is_empty() => (true, second, action),
            Some(_) => return None,
        };
        let is_whole = tokens.next().is_none();
        is_whole.then_some(Self { service, customer, of_client, noun, action })
    }
}

impl fmt::Display for Subject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { service, customer, of_client, noun, action } = self;
        write!(f, "assay.{service}.{customer}.")?;
        if *of_client {
            write!(f, "{CLIENT}.")?;
        }
        write!(f, "{noun}.{action}")
    }
}

/// Turns text into one token of a subject: in lower case, with `_` for every character that could
/// change the meaning of the subject.
pub(crate) fn token(text: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let token: String = text.chars().take(LONGEST_TOKEN).map(safe).collect();
    if token.is_empty() { "_".to_owned() } else { token.to_ascii_lowercase() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_no_characters_with_a_meaning_in_subjects() {
        let long = "x".repeat(500);
        for (text, expected) in [
            ("TestCase", "testcase"),
            ("test_case", "test_case"),
            ("a.b.>", "a_b__"),
            ("* \r\nPUB", "____pub"),
            ("prüfung", "pr_fung"),
            ("", "_"),
            (&long, &long[..LONGEST_TOKEN]),
        ] {
            assert_eq!(token(text), expected);
        }
    }

    #[test]
    fn the_subject_of_an_event_is_parsed() {
        let customer = CustomerId::new();
        let text = format!("assay.catalog.{customer}.test_case.created");
        for (text, of_client, noun, action) in [
            (text.clone(), false, "test_case", "created"),
            (format!("assay.notifications.{customer}.client.begun"), false, "client", "begun"),
            (format!("assay.notifications.{customer}.client.build.begun"), true, "build", "begun"),
            (format!("assay.notifications.{customer}.client.client.a"), true, "client", "a"),
        ] {
            let subject = Subject::parse(&text).unwrap();
            let service = text.split('.').nth(1).unwrap();
            assert_eq!(subject, Subject { service, customer, of_client, noun, action });
            assert_eq!(subject.to_string(), text);
        }
        for other in [
            "",
            "assay.catalog.x",
            "assay.catalog.1.test_case.created",
            &format!("assay.catalog.{customer}.test_case"),
            &format!("{text}.v1"),
            &format!("{text}."),
            &format!("assay.notifications.{customer}.client.a.b.c"),
            &format!("other.catalog.{customer}.test_case.created"),
        ] {
            assert_eq!(Subject::parse(other), None, "{other}");
        }
    }
}
