//! Tests with texts that no tool writes.

use std::time::{Duration, Instant};

use assay_fingerprint::Failure;
use proptest::prelude::*;

/// Size of a text that is read, in bytes.
const READ: usize = 64 << 10;

/// Parts that are meaningful to the rules, for texts that combine them.
const PARTS: &[&str] = &[
    "E   ",
    "Error: ",
    "Caused by: ",
    "Traceback (most recent call last):",
    "Output:",
    "Call log:",
    "at ",
    "\n",
    "\n  ",
    " ",
    "'",
    "\"",
    "`",
    "://",
    "/tmp/",
    ":7:3",
    "0x7f",
    "-",
    "<n>",
    "12",
    "3.5",
    "ms",
    "status ",
    "503",
    "µ",
    "ä",
    "\u{1b}[31m",
    "\u{1b}]8;;",
    "[31m",
    "...",
    "2026-11-22",
    "T12:34:56Z",
    "127.0.0.1",
    "8c5a1c0e-4f0b-4a57-9d3e-3f1c2b7a9e10",
    "thread '",
    " panicked at ",
];

fn parts() -> impl Strategy<Value = String> {
    proptest::collection::vec(proptest::sample::select(PARTS), 0..60)
        .prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn any_text_is_read(text in any::<String>()) {
        let _ = Failure::of(&text);
    }

    #[test]
    fn any_combination_of_parts_is_read(text in parts()) {
        if let Some(failure) = Failure::of(&text) {
            prop_assert!(failure.headline.chars().count() <= 400);
            prop_assert!((1..=4).contains(&failure.headline.lines().count()));
        }
    }

    #[test]
    fn colours_and_line_ends_do_not_matter(text in "[a-z '\"0-9:/.]{1,60}(\n[a-z ]{1,20}){0,3}") {
        let coloured = format!("\u{1b}[31m{}\u{1b}[0m", text.replace('\n', "\r\n"));
        prop_assert_eq!(Failure::of(&text), Failure::of(&coloured));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn only_the_beginning_of_a_text_counts(part in parts(), rest in parts()) {
        prop_assume!(!part.is_empty());
        let text = part.repeat(READ / part.len() + 1);
        let end = text.floor_char_boundary(READ);
        let beginning = &text[..end];
        let longer = format!("{beginning}{}", "\u{e4}".repeat(4)) + &rest;
        if beginning.len() == READ {
            prop_assert_eq!(Failure::of(beginning), Failure::of(&longer));
        }
    }
}

#[test]
fn a_text_without_visible_characters_is_not_a_failure() {
    for text in ["", " \n\t\r\n", "\u{1b}[31m\u{1b}[0m", "\0\u{7}", "\u{200b}"] {
        assert_eq!(Failure::of(text), None, "{text:?}");
    }
}

#[test]
fn the_time_to_read_a_text_does_not_depend_on_its_contents() {
    let mut parts: Vec<&str> = PARTS.to_vec();
    parts.extend([
        "(", "1", "1,", "1.", "1m1.", "a", "a1", "-1", "1-", "'a ", "\"1", "a:/", ":/", "a://",
        "1²", "a-",
    ]);
    parts.extend([
        "E   x\n",
        "Error: x\n",
        "at a.b\n",
        "\u{1b}",
        "[1",
        "f0-",
        "http 1 ",
        "1m",
        "<n> ",
    ]);
    for part in parts {
        // A rule may recognize all of a text and fail at its end.
        let text = format!("{}x_", part.repeat(READ / part.len() - 1));
        let start = Instant::now();
        let _ = Failure::of(&text);
        // A quadratic rule takes minutes; a linear one 20 ms, even without optimization.
        assert!(start.elapsed() < Duration::from_secs(5), "{part:?}: {:?}", start.elapsed());
    }
}
