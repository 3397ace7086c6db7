//! The forms in which runners take the tests that they leave out.
//!
//! Identifiers are those of reports. A runner names its tests otherwise, so the form is derived from the
//! identifier and the name of a test.

use std::path::Path;

use crate::Format;

/// Returns the lines to print for tests, each with its identifier and its name. There are none without tests.
pub(super) fn lines(format: Format, tests: &[(&str, &str)]) -> Vec<String> {
    if tests.is_empty() {
        return Vec::new();
    }
    let of = |one: fn(&str, &str) -> String| {
        tests.iter().map(|(identifier, name)| one(identifier, name)).collect::<Vec<_>>()
    };
    match format {
        Format::Names => of(|identifier, _| identifier.to_owned()),
        Format::Pytest => of(|identifier, _| {
            format!("--deselect={}", node(identifier, |path| Path::new(path).is_file()))
        }),
        // Playwright joins the project, the file, the titles and the tags of a test by spaces.
        Format::Playwright => vec![format!("( |^)({})( @|$)", of(playwright).join("|"))],
        // Jest and Vitest join the titles of a test by spaces, and have no option that leaves tests out.
        Format::Jest => vec![format!("^(?!({})$)", of(jest).join("|"))],
        Format::Surefire => vec![of(surefire).join(",")],
        Format::Go => vec![of(go).join("|")],
    }
}

/// Returns whether a test can be left out without others. The identifiers are those in reports, and could be
/// what a runner takes for several tests.
pub(super) fn is_one(format: Format, identifier: &str) -> bool {
    match format {
        // All tests are left out whose node ids begin with this one: without a test, whole folders.
        Format::Pytest => {
            let node = node(identifier, |path| Path::new(path).is_file());
            node.rsplit_once("::").is_some_and(|(file, test)| !file.is_empty() && !test.is_empty())
        }
        // Lists, methods that are joined by `+`, patterns, negated ones, and classes.
        Format::Surefire => {
            let several = [',', '+', '*', '?', '!', '#', '%', '/', '\\'];
            let method = method(identifier);
            !method.contains(several) && method.split('.').all(|part| !part.is_empty())
        }
        Format::Names | Format::Playwright | Format::Jest | Format::Go => true,
    }
}

/// Returns the node id that pytest gives a test with this identifier, such as
/// `tests/test_shop.py::TestPay::test_card[visa]`. Modules are files, and classes are not.
fn node(identifier: &str, is_file: impl Fn(&str) -> bool) -> String {
    if identifier.contains("::") {
        return identifier.to_owned();
    }
    // Parameters may have dots.
    let (place, parameters) = match identifier.find('[') {
        Some(at) => identifier.split_at(at),
        None => (identifier, ""),
    };
    let parts: Vec<&str> = place.split('.').collect();
    for length in (1..parts.len()).rev() {
        let file = format!("{}.py", parts[..length].join("/"));
        if is_file(&file) {
            return format!("{file}::{}{parameters}", parts[length..].join("::"));
        }
    }
    // The file is elsewhere. Most modules have a test each below them.
    match place.rsplit_once('.') {
        Some((module, name)) => format!("{}.py::{name}{parameters}", module.replace('.', "/")),
        None => identifier.to_owned(),
    }
}

/// Returns the titles of a test behind each other, as runners join them.
fn titles(name: &str) -> String {
    name.replace(" › ", " ").replace(" > ", " ")
}

fn playwright(identifier: &str, name: &str) -> String {
    let file = identifier.strip_suffix(name).map(|file| file.trim_end_matches('.'));
    let titles = titles(name);
    match file.filter(|file| !file.is_empty()) {
        Some(file) => escaped(&format!("{file} {titles}")),
        None => escaped(&titles),
    }
}

fn jest(_: &str, name: &str) -> String {
    escaped(&titles(name))
}

/// Returns the method of a class. All of its parameters are left out together.
fn surefire(identifier: &str, _: &str) -> String {
    let method = method(identifier);
    match method.rsplit_once('.') {
        Some((class, method)) => format!("!{class}#{method}"),
        None => format!("!{method}"),
    }
}

/// Returns an identifier of JUnit without parameters.
fn method(identifier: &str) -> &str {
    identifier.split(['(', '[', '{']).next().unwrap_or(identifier).trim_end()
}

/// Returns a pattern for each part of the name of a test. Go matches them one by one.
fn go(_: &str, name: &str) -> String {
    name.split('/').map(|part| format!("^{}$", escaped(part))).collect::<Vec<_>>().join("/")
}

/// Returns a regular expression that only matches a text.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        if r"\^$.|?*+()[]{}/".contains(char) {
            escaped.push('\\');
        }
        escaped.push(char);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pytest_leaves_out_the_tests_of_files() {
        let files = ["tests/test_shop.py", "test_top.py"];
        for (identifier, expected) in [
            ("tests.test_shop.TestPay.test_card", "tests/test_shop.py::TestPay::test_card"),
            ("tests.test_shop.test_pay[a.b-1.5]", "tests/test_shop.py::test_pay[a.b-1.5]"),
            ("test_top.test_pay", "test_top.py::test_pay"),
            ("elsewhere.test_pay.test_it", "elsewhere/test_pay.py::test_it"),
            ("tests/test_shop.py::test_pay", "tests/test_shop.py::test_pay"),
            ("alone", "alone"),
        ] {
            assert_eq!(node(identifier, |path| files.contains(&path)), expected);
        }
    }

    #[test]
    fn identifiers_that_stand_for_several_tests_leave_out_none() {
        for (identifier, pytest, surefire) in [
            ("tests.test_shop.test_pay[a,b*]", true, true),
            ("com.acme.PayTest.card(int, int[])[1]", true, true),
            ("a.b::c", true, true),
            ("tests", false, true),
            ("tests/test_shop.py", true, false),
            ("tests/test_shop.py::", false, false),
            ("::", false, true),
            ("", false, false),
            ("com.acme.PayTest.", false, false),
            (".card", true, false),
            ("a.b,!com.acme.*", true, false),
            ("a.b+card", true, false),
            ("a.Test?.b", true, false),
            ("%regex[.*]", false, false),
        ] {
            assert_eq!(is_one(Format::Pytest, identifier), pytest, "{identifier}");
            assert_eq!(is_one(Format::Surefire, identifier), surefire, "{identifier}");
            assert!(is_one(Format::Go, identifier), "{identifier}");
        }
    }

    #[test]
    fn each_runner_has_its_form() {
        let shop = [("shop.spec.js.login › refuses (twice)", "login › refuses (twice)")];
        let playwright = r"( |^)(shop\.spec\.js login refuses \(twice\))( @|$)";
        let junit = [("com.acme.PayTest.card(int)[1]", "card(int)[1]"), ("com.acme.A.b", "b")];
        let go = [("example.com/shop.TestPay/by_card", "TestPay/by_card"), ("p.TestA", "TestA")];
        for (format, tests, expected) in [
            (Format::Names, &shop[..], shop[0].0),
            (Format::Playwright, &shop, playwright),
            (Format::Jest, &shop, r"^(?!(login refuses \(twice\))$)"),
            (Format::Surefire, &junit, "!com.acme.PayTest#card,!com.acme.A#b"),
            (Format::Go, &go, "^TestPay$/^by_card$|^TestA$"),
        ] {
            assert_eq!(lines(format, tests), [expected]);
            assert!(lines(format, &[]).is_empty());
        }
    }
}
