//! What makes a webhook.

use assay_proto::{Fault, notification::WebhookInput};
use assay_records::Check;
use url::Url;

use super::secret;
use crate::{delivery::Reach, notification::rules::is_name};

/// What is shown instead of a secret, and leaves it as it is.
pub(super) const MASK: &str = "********";

/// All notifications.
const ALL: &str = "*";

/// How many webhooks a customer may have.
pub(super) const MOST: i64 = 50;

/// How many kinds of events a webhook may name.
const MOST_EVENTS: usize = 50;

/// What a URL may have at most, in bytes.
const LONGEST_URL: usize = 2048;

/// Checks what a client has sent of a new webhook, which has a secret in any case.
pub(super) fn new(input: WebhookInput, reach: &Reach) -> Result<WebhookInput, Fault> {
    if input.secret == MASK {
        return Err(Fault::invalid("Secret", "is masked, and there is no stored value to keep"));
    }
    valid(WebhookInput { archived: false, ..input }, reach)
}

/// Checks what a webhook is to be.
pub(super) fn valid(mut input: WebhookInput, reach: &Reach) -> Result<WebhookInput, Fault> {
    let mut check = Check::default();
    if let Some(problem) = url_problem(&input.url, reach) {
        check.refuse("Url", problem);
    }
    if input.events.len() > MOST_EVENTS {
        check.refuse("Events", format!("must be at most {MOST_EVENTS}"));
    }
    for (place, event) in input.events.iter().enumerate() {
        if !is_pattern(event) {
            let problem =
                "must be `*` or `Source.Action`, such as `TestSet.Completed` or `*.Deleted`";
            check.refuse(format!("Events/{place}"), problem);
        }
    }
    if input.secret.is_empty() {
        input.secret = secret::generate()?;
    } else if input.secret != MASK
        && let Some(problem) = secret::problem(&input.secret)
    {
        check.refuse("Secret", problem);
    }
    check.done()?;
    if input.events.is_empty() || input.events.iter().any(|event| event == ALL || event == "*.*") {
        input.events = vec![ALL.to_owned()];
    }
    input.events.sort_unstable();
    input.events.dedup();
    Ok(input)
}

fn is_pattern(text: &str) -> bool {
    let part = |part: &str| part == ALL || (is_name(part) && !part.contains('*'));
    let is_divided_at = |(place, _)| part(&text[..place]) && part(&text[place + 1..]);
    text == ALL || text.match_indices('.').any(is_divided_at)
}

fn url_problem(text: &str, reach: &Reach) -> Option<String> {
    if text.len() > LONGEST_URL {
        return Some(format!("must have at most {LONGEST_URL} bytes"));
    }
    let is_odd = |char: char| char.is_control() || char.is_whitespace();
    let Some(url) = Url::parse(text).ok().filter(|url| url.has_host() && !text.contains(is_odd))
    else {
        return Some("must be a URL such as https://ci.example.org/assay".to_owned());
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Some("must not contain a user name or password".to_owned());
    }
    reach.problem(&url)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(url: &str) -> WebhookInput {
        WebhookInput { url: url.to_owned(), ..WebhookInput::default() }
    }

    #[test]
    fn without_a_choice_it_is_all_events_and_a_new_secret() {
        let input = new(input("https://ci.example/assay"), &Reach::default()).unwrap();
        assert_eq!(input.events, ["*"]);
        assert!(input.secret.starts_with("whsec_"));
    }

    #[test]
    fn events_are_kinds_and_actions() {
        let of = |events: &[&str]| {
            let events = events.iter().map(|&event| event.to_owned()).collect();
            let input = WebhookInput { events, ..input("https://ci.example") };
            valid(input, &Reach::default()).map(|input| input.events)
        };
        let kept = of(&["TestSet.Completed", "*.Deleted", "TestSet.Completed"]).unwrap();
        assert_eq!(kept, ["*.Deleted", "TestSet.Completed"]);
        assert_eq!(of(&["TestSet.*", "*.*"]).unwrap(), ["*"]);
        let named = ["Test Set.Completed", "a.b.c"];
        assert_eq!(of(&named).unwrap(), named);
        for wrong in ["", ".", "TestSet", "TestSet.", "Test\nSet.Completed", "**", "Te*.*"] {
            assert!(of(&[wrong]).is_err(), "{wrong:?} was taken");
        }
    }

    #[test]
    fn only_https_into_the_internet_is_taken_unless_networks_are_allowed() {
        let closed = Reach::default();
        for url in ["https://ci.example", "https://ci.example:8443/a?b=c", "https://192.0.79.1/"] {
            assert_eq!(url_problem(url, &closed), None, "{url}");
        }
        for url in [
            "",
            "ci.example",
            "http://ci.example",
            "ftp://ci.example",
            "https://",
            "https://ada:secret@ci.example",
            "https://ci.example/ x",
            "https://127.0.0.1/",
            "https://[::1]/",
            "https://0x7f.1/",
            "https://169.254.169.254/latest/meta-data",
        ] {
            assert!(url_problem(url, &closed).is_some(), "{url:?} was taken");
        }
        let open = Reach::new("10.0.0.0/8".parse().unwrap());
        assert_eq!(url_problem("http://10.1.2.3:8080/", &open), None);
        assert!(url_problem("https://127.0.0.1/", &open).is_some());
    }

    #[test]
    fn a_mask_keeps_what_there_is_and_needs_something() {
        let masked = WebhookInput { secret: MASK.to_owned(), ..input("https://ci.example") };
        assert!(new(masked.clone(), &Reach::default()).is_err());
        assert_eq!(valid(masked, &Reach::default()).unwrap().secret, MASK);
    }
}
