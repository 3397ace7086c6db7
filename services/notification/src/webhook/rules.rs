//! Rules for the fields of a webhook.

use assay_events::EventPattern;
use assay_proto::{
    Fault, ProjectId, TestSetId,
    notification::{Webhook, WebhookFormat, WebhookInput},
};
use assay_records::{Check, branch};
use url::Url;

use super::{headers, timing};
use crate::{
    egress::EgressPolicy,
    filter::LONGEST_OWNER,
    secret::{self, MASK},
};

/// Maximum number of webhooks of a customer.
pub(super) const MAX_WEBHOOKS: i64 = 50;

/// Maximum number of event patterns of a webhook, and of its projects, test sets, branches and owners.
const MAX_EVENTS: usize = 50;

/// Maximum number of results of a webhook.
const MAX_RESULTS: usize = 10;

/// Maximum number of trends of a webhook.
const MAX_TRENDS: usize = 3;

/// Maximum length of a URL, in bytes.
const MAX_URL: usize = 2048;

/// Checks and normalizes the input of a new webhook. Generates a secret if there is none.
pub(super) fn validate_new(
    input: WebhookInput,
    policy: &EgressPolicy,
) -> Result<WebhookInput, Fault> {
    if input.secret == MASK {
        return Err(Fault::invalid("Secret", "is masked; omit it to generate a secret"));
    }
    validate(WebhookInput { archived: false, ..input }, policy)
}

/// Checks and normalizes the input of a webhook. Generates a secret if there is none.
pub(super) fn validate(
    mut input: WebhookInput,
    policy: &EgressPolicy,
) -> Result<WebhookInput, Fault> {
    let mut check = Check::default();
    if let Some(problem) = url_problem(&input.url, policy) {
        check.refuse("Url", problem);
    }
    input.events = events(&mut check, &input);
    filters(&mut check, &mut input);
    if input.secret.is_empty() {
        input.secret = secret::generate()?;
    } else if input.secret != MASK
        && let Some(problem) = secret::problem(&input.secret)
    {
        check.refuse("Secret", problem);
    }
    headers::check(&mut check, &input.headers);
    timing::check(&mut check, &mut input);
    check.done()?;
    Ok(input)
}

/// Reads patterns of events, as they are documented and in one order. Without any, they are those of the
/// format.
fn events(check: &mut Check, input: &WebhookInput) -> Vec<String> {
    if input.events.is_empty() {
        return events_of(input.format());
    }
    if input.events.len() > MAX_EVENTS {
        check.refuse("Events", format!("must have at most {MAX_EVENTS} entries"));
        return Vec::new();
    }
    let mut read = Vec::with_capacity(input.events.len());
    check.within("Events", |check| {
        for (index, event) in input.events.iter().enumerate() {
            match EventPattern::parse(event) {
                Ok(pattern) => read.push(pattern),
                Err(problem) => check.refuse(index.to_string(), problem),
            }
        }
    });
    if read.iter().any(EventPattern::is_any) {
        return vec![EventPattern::any().as_str().to_owned()];
    }
    read.sort_unstable();
    read.dedup();
    read.iter().map(|pattern| pattern.as_str().to_owned()).collect()
}

/// Checks the projects, test sets, branches, results, trends and owners, and puts each of them into one order.
fn filters(check: &mut Check, input: &mut WebhookInput) {
    for (field, count, most) in [
        ("ProjectIds", input.project_ids.len(), MAX_EVENTS),
        ("TestSetIds", input.test_set_ids.len(), MAX_EVENTS),
        ("Branches", input.branches.len(), MAX_EVENTS),
        ("Results", input.results.len(), MAX_RESULTS),
        ("Trends", input.trends.len(), MAX_TRENDS),
        ("Owners", input.owners.len(), MAX_EVENTS),
    ] {
        if count > most {
            check.refuse(field, format!("must have at most {most} entries"));
        }
    }
    ids(check, "ProjectIds", "project", &input.project_ids, |id| ProjectId::from_path(id).is_ok());
    ids(check, "TestSetIds", "test set", &input.test_set_ids, |id| {
        TestSetId::from_path(id).is_ok()
    });
    for (index, pattern) in input.branches.iter().enumerate().take(MAX_EVENTS) {
        branch::check(check, &format!("Branches/{index}"), pattern, branch::LONGEST_BRANCH);
    }
    for (index, owner) in input.owners.iter().enumerate().take(MAX_EVENTS) {
        check.line(&format!("Owners/{index}"), owner, 1..=LONGEST_OWNER);
    }
    order(&mut input.project_ids);
    order(&mut input.test_set_ids);
    order(&mut input.branches);
    order(&mut input.results);
    order(&mut input.trends);
    order(&mut input.owners);
}

/// Checks the ids of records of a kind.
fn ids(check: &mut Check, field: &str, kind: &str, ids: &[String], is_id: impl Fn(&str) -> bool) {
    for (index, id) in ids.iter().enumerate().take(MAX_EVENTS) {
        if !is_id(id) {
            let problem = format!("must be the id of a {kind}, a UUID");
            check.refuse(format!("{field}/{index}"), problem);
        }
    }
}

fn order<T: Ord>(list: &mut Vec<T>) {
    list.sort_unstable();
    list.dedup();
}

/// Returns whether an update makes the record of failures obsolete: the URL is another one, or the
/// webhook was moved into the archive or out of it.
pub(super) fn resets_failures(current: &Webhook, input: &WebhookInput) -> bool {
    current.url != input.url || current.archived != input.archived
}

/// The events that are sent in a format by default.
fn events_of(format: WebhookFormat) -> Vec<String> {
    let events: &[&str] = match format {
        WebhookFormat::CloudEvents | WebhookFormat::Unspecified => &["*"],
        WebhookFormat::CdEvents => &["TestSet.Completed", "TestSet.Canceled", "TestCase.Finished"],
        _ => &["TestSet.Completed"],
    };
    events.iter().map(|&event| event.to_owned()).collect()
}

fn url_problem(text: &str, policy: &EgressPolicy) -> Option<String> {
    if text.len() > MAX_URL {
        return Some(format!("must have at most {MAX_URL} bytes"));
    }
    let is_odd = |char: char| char.is_control() || char.is_whitespace();
    let Some(url) = Url::parse(text).ok().filter(|url| url.has_host() && !text.contains(is_odd))
    else {
        return Some("must be a URL such as https://ci.example.org/assay".to_owned());
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Some("must not contain a user name or password".to_owned());
    }
    policy.problem(&url)
}

#[cfg(test)]
mod tests {
    use assay_proto::Trend;

    use super::*;

    fn input(url: &str) -> WebhookInput {
        WebhookInput { url: url.to_owned(), ..WebhookInput::default() }
    }

    #[test]
    fn a_webhook_defaults_to_all_events_and_a_generated_secret() {
        let input =
            validate_new(input("https://ci.example/assay"), &EgressPolicy::default()).unwrap();
        assert_eq!(input.events, ["*"]);
        assert!(input.secret.starts_with("whsec_"));
    }

    #[test]
    fn events_are_patterns_of_kind_and_action() {
        let of = |events: &[&str]| {
            let events = events.iter().map(|&event| event.to_owned()).collect();
            let input = WebhookInput { events, ..input("https://ci.example") };
            validate(input, &EgressPolicy::default()).map(|input| input.events)
        };
        let normalized = of(&["testset.COMPLETED", "*.Deleted", "TestSet.Completed"]).unwrap();
        assert_eq!(normalized, ["*.Deleted", "TestSet.Completed"]);
        assert_eq!(of(&["TestSet.*", "*.*"]).unwrap(), ["*"]);
        let of_clients = ["Client.Test Set.Completed", "Client.a.b.c"];
        assert_eq!(of(&of_clients).unwrap(), of_clients);
        for wrong in ["", "TestSet", "TestSet.", "TestSet.Complete", "Nope.Nope", "Te*.*"] {
            assert!(of(&[wrong]).is_err(), "{wrong:?} was accepted");
        }
    }

    #[test]
    fn filters_are_refused_with_their_place_and_put_into_one_order() {
        let id = "019cade2-11c0-7594-983c-a6917545a63c";
        let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        let (worse, same) = (Trend::Worse.into(), Trend::Same.into());
        let given = WebhookInput {
            test_set_ids: texts(&[id, id]),
            branches: texts(&["release/*", "dev", "release/*"]),
            owners: texts(&["Checkout team", "Ada", "Ada"]),
            trends: vec![same, worse, worse],
            ..input("https://ci.example")
        };
        let read = validate(given, &EgressPolicy::default()).unwrap();
        assert_eq!(read.test_set_ids, [id]);
        assert_eq!(read.branches, ["dev", "release/*"]);
        assert_eq!(read.owners, ["Ada", "Checkout team"]);
        assert_eq!(read.trends, [worse, same]);

        let wrong = WebhookInput {
            project_ids: texts(&[id, "shop"]),
            test_set_ids: texts(&["nightly"]),
            branches: texts(&["main", "a\nb", "*/*/*/*/*/*/*/*/*/*/*"]),
            owners: texts(&["Ada", ""]),
            trends: vec![worse; 4],
            ..input("https://ci.example")
        };
        let Err(Fault::Invalid(violations)) = validate(wrong, &EgressPolicy::default()) else {
            panic!("it was accepted")
        };
        let mut fields: Vec<_> = violations.into_iter().map(|one| one.field).collect();
        fields.sort_unstable();
        let expected =
            ["Branches/1", "Branches/2", "Owners/1", "ProjectIds/1", "TestSetIds/0", "Trends"];
        assert_eq!(fields, expected);
    }

    #[test]
    fn urls_need_https_and_a_public_host_unless_their_network_is_allowed() {
        let closed = EgressPolicy::default();
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
            assert!(url_problem(url, &closed).is_some(), "{url:?} was accepted");
        }
        let open = EgressPolicy::new("10.0.0.0/8".parse().unwrap());
        assert_eq!(url_problem("http://10.1.2.3:8080/", &open), None);
        assert!(url_problem("https://127.0.0.1/", &open).is_some());
    }

    #[test]
    fn another_url_and_the_archive_reset_the_record_of_failures() {
        let current = Webhook { url: "https://ci.example".to_owned(), ..Webhook::default() };
        let same = input("https://ci.example");
        assert!(!resets_failures(&current, &same));
        assert!(resets_failures(&current, &input("https://ci.example/other")));
        assert!(resets_failures(&current, &WebhookInput { archived: true, ..same }));
    }

    #[test]
    fn a_masked_secret_is_kept_and_rejected_for_a_new_webhook() {
        let masked = WebhookInput { secret: MASK.to_owned(), ..input("https://ci.example") };
        assert!(validate_new(masked.clone(), &EgressPolicy::default()).is_err());
        assert_eq!(validate(masked, &EgressPolicy::default()).unwrap().secret, MASK);
    }
}
