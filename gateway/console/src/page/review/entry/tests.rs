//! How entries are sent to the interface.

use super::*;

fn entry(pairs: &[(&str, &str)]) -> Entry {
    let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Entry::read(pairs.collect())
}

fn review_of(pairs: &[(&str, &str)]) -> String {
    serde_json::to_string(&entry(pairs).review(None)).unwrap()
}

#[test]
fn empty_fields_are_left_out() {
    let pairs = [("report", "1"), ("report", "2"), ("status", "Accepted"), ("comment", " ")];
    assert_eq!(review_of(&pairs), r#"{"Reports":["1","2"],"Status":"Accepted"}"#);
}

#[test]
fn causes_are_judged_as_the_list_shows_them() {
    let pairs = [
        ("report", "1"),
        ("cause", "ab"),
        ("cause", "cd"),
        ("status", "Accepted"),
        ("ticket", "SHOP-1"),
        ("until", "2026-12-24"),
    ];
    let entry = entry(&pairs).among(Some("New".to_owned()), Some("false".to_owned()));
    assert_eq!(entry.selected, ["1", "ab", "cd"]);
    let review = serde_json::to_string(&entry.review(None)).unwrap();
    let expected = r#"{"Reports":["1"],"Causes":["ab","cd"],"Change":"New","Muted":false,"Status":"Accepted","Ticket":"SHOP-1","Known":{"EveryCase":false,"MutedUntil":"2026-12-25T00:00:00+00:00"}}"#;
    assert_eq!(review, expected);
}

#[test]
fn judged_tests_of_a_cause_are_left_out_if_the_form_says_so() {
    let pairs = [("cause", "ab"), ("unreviewed", "true"), ("status", "Accepted")];
    let expected = r#"{"Causes":["ab"],"Unreviewed":true,"Status":"Accepted"}"#;
    assert_eq!(review_of(&pairs), expected);
    let named = [("report", "1"), ("unreviewed", "true"), ("status", "Accepted")];
    assert_eq!(review_of(&named), r#"{"Reports":["1"],"Status":"Accepted"}"#);
}

#[test]
fn a_mute_ends_with_the_day_of_the_reader() {
    let pairs = [("report", "1"), ("until", "2026-12-24"), ("untilOffset", "480")];
    let review = review_of(&pairs);
    assert!(review.contains(r#""MutedUntil":"2026-12-25T08:00:00+00:00""#), "{review}");
    let wrong = entry(&[("report", "1"), ("until", "24.12.2026")]);
    assert!(wrong.missing().unwrap().contains("yyyy-mm-dd"));
}

#[test]
fn a_whole_judgement_replaces_texts_and_names_the_versions_it_has_seen() {
    let pairs = [("report", "1"), ("seen", "1.7"), ("status", "Accepted"), ("whole", "true")];
    let expected = r#"{"Reports":["1"],"Status":"Accepted","Comment":"","Ticket":"","Seen":[{"Id":"1","DataVersion":"7"}]}"#;
    assert_eq!(review_of(&pairs), expected);
    let whole = |comment| entry(&[&pairs[..], &[("comment", comment)]].concat());
    assert_eq!(whole("a\r\nb").text(Some("a\nb"), Some("a\r\nb")), None, "it is unchanged");
    assert_eq!(whole("a\r\nb").comment.as_deref(), Some("a\nb"));
    assert_eq!(whole("c").text(Some("c"), Some("b")), Some("c"));
    assert_eq!(whole("").text(None, Some("b")), Some(""));
}

#[test]
fn a_judgement_of_a_cause_names_the_version_it_has_seen() {
    let pairs = [("cause", "ab"), ("seenCause", "ab.-7"), ("status", "Accepted")];
    let expected = r#"{"Causes":["ab"],"Status":"Accepted","SeenCauses":[{"Fingerprint":"ab","DataVersion":"-7"}]}"#;
    assert_eq!(review_of(&pairs), expected);
    let cause: Cause = serde_json::from_value(serde_json::json!({
        "Fingerprint": "ab", "Headline": "", "Count": 1, "Variants": 1, "DataVersion": "8",
        "Reports": [],
    }))
    .unwrap();
    let mut refused = entry(&pairs);
    refused.problem = Some("Enter the day".to_owned());
    assert_eq!(refused.seen_cause(&cause), "ab.-7", "the user has not seen another one");
    refused.is_conflict = true;
    assert_eq!(refused.seen_cause(&cause), "ab.8", "the page shows both judgements");
}

#[test]
fn a_selection_and_the_end_of_a_mute_are_needed() {
    assert_eq!(entry(&[("status", "Accepted")]).missing(), Some("Select at least one test."));
    let every = [("cause", "ab"), ("every", "true")];
    assert!(entry(&every).missing().is_some());
    assert!(entry(&every[..1]).missing().is_none());
}

#[test]
fn a_refused_judgement_keeps_the_versions_that_were_seen_unless_it_shows_another_one() {
    let mut entry = entry(&[("report", "1"), ("seen", "1.7")]);
    assert_eq!(entry.seen("1", "8"), "1.8", "the page shows it");
    entry.problem = Some("Enter the day".to_owned());
    assert_eq!((entry.seen("1", "8"), entry.seen("2", "8")), ("1.7".into(), "2.8".into()));
    entry.is_conflict = true;
    assert_eq!(entry.seen("1", "8"), "1.8", "the page shows both judgements");
}
