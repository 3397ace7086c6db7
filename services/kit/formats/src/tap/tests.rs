//! Tests with files of TAP.

use crate::{Test, read};

fn outline(file: &str) -> Vec<String> {
    let mut lines = Vec::new();
    read(file.as_bytes(), |test: Test| {
        let reason = &test.attempts[0].reason;
        let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        lines.push(format!("{:?} {}{reason}", test.result(), test.identifier()));
        Ok(())
    })
    .unwrap();
    lines
}

#[test]
fn subtests_with_their_titles_inside_are_read() {
    // As Perl writes them.
    let file = "1..3\n    # Subtest: cart\n    1..2\n    ok 1 - adds\n    not ok 2 - refuses\n\
        not ok 1 - cart\nok 2 - ships\nok 3\n";
    assert_eq!(
        outline(file),
        ["Passed cart.adds", "Failed cart.refuses", "Passed ships", "Passed 3"]
    );
}

#[test]
fn a_suite_that_fails_by_itself_is_a_test() {
    let file = "TAP version 14\n# Subtest: cart\n    # Subtest: adds\n    ok 1 - adds\n    1..1\n\
        not ok 1 - cart\n1..1\n";
    assert_eq!(outline(file), ["Passed cart.adds", "Failed cart"]);
}

#[test]
fn subtests_in_brackets_behind_their_line_are_read() {
    // As Test2 of Perl writes them.
    let file = "ok 1 - cart {\n    ok 1 - adds\n    not ok 2 - refuses # TODO later\n    1..2\n}\n\
        not ok 2 - pay {\n    not ok 1 - pays\n    1..1\n}\nok 3 - ships\nnot ok 4 - bills\nok 5 - has {\n\
        1..5\n";
    let expected = [
        "Passed cart.adds",
        "Canceled cart.refuses: later",
        "Failed pay.pays",
        "Passed ships",
        "Failed bills",
        "Passed has {",
    ];
    assert_eq!(outline(file), expected);
    // As node-tap writes them: of a test that failed, the bracket is behind the block.
    let file = "TAP version 14\nok 1 - a.js # time=5ms {\n    ok 1 - adds # time=2ms {\n        ok 1 - one\n\
        \u{20}       1..1\n    }\n    \n    1..1\n}\n\nnot ok 2 - b.js # time=5ms\n  ---\n  exitCode: 1\n  ...\n{\n\
        \u{20}   ok 1 - pays\n    1..1\n}\n\n1..2\n";
    assert_eq!(outline(file), ["Passed a.js > adds.one", "Passed b.js.pays", "Failed b.js"]);
    read(file.as_bytes(), |test: Test| {
        let problem = test.attempts[0].problems.first();
        assert!(problem.is_none_or(|problem| problem.text.contains("exitCode: 1")), "{test:?}");
        Ok(())
    })
    .unwrap();
}

#[test]
fn brackets_that_belong_to_no_test_are_ignored() {
    let file = "1..2\nok 1 - a {\n    ok 1 - x\n}\n    {\n{\n    }\n}\nok 2 - b\n";
    assert_eq!(outline(file), ["Passed a.x", "Passed b"]);
}

#[test]
fn suites_of_vitest_that_fail_by_themselves_are_tests() {
    let file = "TAP version 13\n1..2\nnot ok 1 - hooks.test.ts # time=4.00ms {\n    1..2\n\
        \u{20}   not ok 1 - a broken afterAll # time=1.00ms {\n        1..1\n\
        \u{20}       ok 1 - passes before it # time=0.10ms\n    }\n\
        \u{20}   not ok 2 - throws # time=0.20ms\n        ---\n        error:\n\
        \u{20}           message: \"outer\nsecond line\"\n        at: \"hooks.test.ts:1:1\"\n        ...\n}\n\
        ok 2 - shop.test.ts # time=1.00ms {\n    1..1\n    ok 1 - adds # time=0.10ms\n}\n";
    let expected = [
        "Passed hooks.test.ts > a broken afterAll.passes before it",
        "Failed hooks.test.ts.a broken afterAll",
        "Failed hooks.test.ts.throws",
        "Passed shop.test.ts.adds",
    ];
    assert_eq!(outline(file), expected);
}

#[test]
fn lines_that_look_like_the_begin_of_a_block_hide_no_test() {
    let difference = "1..2\nok 1 - a\n--- a/cart\n+++ b/cart\nnot ok 2 - b\n";
    assert_eq!(outline(difference), ["Passed a", "Failed b"]);
    let without_end = "1..2\nnot ok 1 - a\n  ---\n  message: died\nnot ok 2 - b\n";
    assert_eq!(outline(without_end), ["Failed a", "Failed b"]);
}

#[test]
fn blocks_without_an_end_hide_no_test_of_a_subtest() {
    let file = "1..1\n# Subtest: cart\n    ok 1 - a\n      ---\n      duration_ms: 5\n    not ok 2 - b\n\
        \u{20}     ---\n      message: |\n        ok 3 - is text\n    Bail out! no database\n";
    assert_eq!(outline(file), ["Passed cart.a", "Failed cart.b", "Aborted Bail out!"]);
    let at_the_end = "1..1\nnot ok 1 - a\n  ---\n  message: died\n";
    assert_eq!(outline(at_the_end), ["Failed a"]);
}

#[test]
fn subtests_whose_line_is_missing_fail_the_run() {
    let file = "1..2\n    # Subtest: a\n    ok 1 - x\n    not ok 2 - y\n    1..2\n\
        \u{20}   # Subtest: b\n    ok 1 - z\n    1..1\nok 2 - b\n";
    let found = outline(file);
    assert_eq!(found.last().map(String::as_str), Some("Aborted Test run"), "{found:?}");
    assert_eq!(found.len(), 4, "{found:?}");
    let died = "1..1\n# Subtest: cart\n    1..3\nok 1 - cart\n";
    assert_eq!(outline(died), ["Aborted cart"]);
}

#[test]
fn each_of_several_files_has_to_keep_its_own_plan() {
    let missing = "Aborted Test run";
    // A program that ended at once.
    let version = "TAP version 13\nTAP version 13\n1..1\nok 1 - a\n";
    assert_eq!(outline(version), [missing, "Passed a"]);
    let first = "1..3\nok 1 - a\n1..3\nok 1 - b\nok 2 - c\n";
    assert_eq!(outline(first), ["Passed a", missing, "Passed b", "Passed c", missing]);
    let at_the_end = "ok 1 - a\n1..1\nok 1 - b\n1..2\n";
    assert_eq!(outline(at_the_end), ["Passed a", "Passed b", missing]);
    let kept = "ok 1 - a\n1..1\nok 1 - b\nok 2 - c\n1..2\n1..0 # SKIP no printer\n1..1\nok 1 - d\n";
    assert_eq!(
        outline(kept),
        ["Passed a", "Passed b", "Passed c", "Canceled All tests: no printer", "Passed d"]
    );
}

#[test]
fn directives_and_bail_outs_are_read() {
    let file = "not ok 1 - later # TODO soon\nok 2 a \\# b # skip no printer\nnot ok 3 c#SKIP\n\
        Bail out! The database is gone.\n";
    let expected = [
        "Canceled later: soon",
        "Canceled a # b: no printer",
        "Failed c#SKIP",
        "Aborted Bail out!",
    ];
    assert_eq!(outline(file), expected);
}

#[test]
fn a_plan_that_is_not_kept_fails_the_run() {
    let found = ["Passed a", "Aborted Test run"];
    assert_eq!(outline("TAP version 13\n1..7\nok 1 - a\n"), found);
    assert_eq!(outline("ok 1 - a\n"), found);
    assert_eq!(outline("1..1\nok 1 - a\nok 2 - b\n")[2], "Error Test run");
    assert_eq!(outline("1..0 # SKIP no database\n"), ["Canceled All tests: no database"]);
    let subtest = "1..1\n# Subtest: cart\n    1..3\n    ok 1 - adds\nok 1 - cart\n";
    assert_eq!(outline(subtest), ["Passed cart.adds", "Aborted cart"]);
    let two = "1..1\nok 1 - a\n1..2\nok 1 - b\n";
    assert_eq!(outline(two), ["Passed a", "Passed b", "Aborted Test run"]);
}

#[test]
fn files_may_begin_with_comments_and_lines_of_npm() {
    for prologue in
        ["# Running tests in t/cart.t\n# perl 5.36\n", "\n> shop@1.0.0 test\n> tape\n\n"]
    {
        assert_eq!(outline(&format!("{prologue}1..1\nok 1 - a\n")), ["Passed a"]);
    }
}

#[test]
fn durations_are_not_part_of_names() {
    for (line, name, seconds) in [
        ("ok 1 adds in 14ms", "adds", 0.014),
        ("not ok 1 hangs in 2022ms # timeout after 2s", "hangs", 2.022),
        ("ok 1 - adds # time=2.5ms", "adds", 0.0025),
        ("ok 1         - boolean                 119 ms", "boolean", 0.119),
        ("ok 1 - answers in 14ms", "answers in 14ms", 0.0),
    ] {
        read(format!("1..1\n{line}\n").as_bytes(), |test: Test| {
            assert_eq!((test.identifier().as_str(), test.seconds), (name, seconds), "{line}");
            Ok(())
        })
        .unwrap();
    }
}

#[test]
fn numbers_outside_of_the_plan_fail_the_run() {
    let of = |numbers: &str| {
        let points: Vec<_> = numbers.split(' ').map(|number| format!("ok {number}\n")).collect();
        let file = format!("1..{}\n{}", points.len(), points.concat());
        outline(&file).iter().any(|line| line.starts_with("Error Test run"))
    };
    for (numbers, fails) in [
        ("1 2 3 4 5", false),
        ("3 1 2", false),
        ("1 2 3 4 6", true),
        ("1 2 3 0 5", true),
        // As Node writes them.
        ("1 2 2 3", false),
    ] {
        assert_eq!(of(numbers), fails, "{numbers}");
    }
    assert_eq!(outline("1..2\nok\nok 2 - b\n").len(), 2, "numbers are optional");
}
