//! Tests with texts that parsers refuse.

use super::*;

fn lenient(json: &str) -> (String, usize) {
    let replaced = Replaced::default();
    let text = io::read_to_string(Lenient::new(json.as_bytes(), replaced.clone())).unwrap();
    (text, replaced.count())
}

#[test]
fn long_texts_lose_their_ends_but_stay_different() {
    for unit in ["a", "ä", "🙂", "\\n", "\\\"", "\\u00e4", "\\ud83d\\ude42"] {
        let json = |end: &str| format!(r#"{{"a": "{}{end}", "b": [1, "x"]}}"#, unit.repeat(TEXT));
        let (clipped, _) = lenient(&json(""));
        assert!(clipped.len() < TEXT + 64, "{unit}: {}", clipped.len());
        let value: serde_json::Value = serde_json::from_str(&clipped).unwrap();
        assert_eq!(value["b"][1], "x", "{unit}");
        assert!(value["a"].as_str().unwrap().len() > TEXT / 8, "{unit}");
        assert_ne!(clipped, lenient(&json("z")).0, "{unit}");
    }
}

#[test]
fn other_documents_stay_as_they_are() {
    let json = r#"{"a\\": "b\"", "c": [1, -2.5e3, {"d": null}, true], "e": "\ud83d\ude42"}"#;
    for json in [json, "", "\"open", "a \"b\n[\"c\"]", "17"] {
        assert_eq!(lenient(json), (json.to_owned(), 0));
    }
    let deep = "[".repeat(DEEPEST + 1);
    let deep = Lenient::new(deep.as_bytes(), Replaced::default());
    assert!(io::read_to_string(deep).is_err());
}

#[test]
fn invalid_characters_and_numbers_cost_no_others() {
    for (json, expected, replaced) in [
        (r#"["a\ud83d"]"#, "a\u{fffd}", 1),
        (r#"["\ud83dx\ude42\ud83d\ud83d\ude42"]"#, "\u{fffd}x\u{fffd}\u{fffd}🙂", 3),
        (r#"["\ud83d\n"]"#, "\u{fffd}\n", 1),
        (r#"["\u0000\u12"]"#, "\u{fffd}\u{fffd}", 2),
        ("[\"\u{1b}[31m\t\\x41\"]", "\u{1b}[31m\t\\x41", 0),
    ] {
        let (text, count) = lenient(json);
        let value: Vec<String> = serde_json::from_str(&text).unwrap();
        assert_eq!((value[0].as_str(), count), (expected, replaced), "{json}");
    }
    let numbers = "[1e999, -1e999, NaN, Infinity, -Infinity, 12, 1e5]";
    assert_eq!(lenient(numbers).0, "[null, null, null, null, null, 12, 1e5]");
    assert_eq!(lenient(&format!("[{}]", "9".repeat(400))).0, "[null]");
}
