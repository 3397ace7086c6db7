//! Stack frames, as languages write them.

/// Headings of stack traces.
const HEADINGS: [&str; 5] =
    ["stack backtrace:", "stacktrace:", "stack trace:", "backtrace:", "stack: |-"];

/// Returns whether a line is a stack frame, or the heading of a stack trace.
pub(crate) fn is_frame(line: &str) -> bool {
    is_called(line)
        || is_java_frame(line)
        || is_python_frame(line)
        || is_ruby_frame(line)
        || is_position(line)
        || line.starts_with("❯ ")
        || line.starts_with("goroutine ") && line.ends_with("]:")
        || line.starts_with("... ") && (line.ends_with(" more") || line.ends_with(" omitted"))
        || line.starts_with('#') && line[1..].starts_with(|char: char| char.is_ascii_digit())
        || line.starts_with("note: run with `RUST_BACKTRACE")
        || HEADINGS.iter().any(|heading| line.eq_ignore_ascii_case(heading))
        || line.contains('@') && ends_with_position(line)
}

/// Recognizes `at shop.Cart.add(Cart.java:7)`, `at async cart.js:7:3` and `at Shop.Add() in Cart.cs`.
fn is_called(line: &str) -> bool {
    let Some(rest) = line.strip_prefix("at ") else { return false };
    let rest = ["async ", "new "].iter().find_map(|word| rest.strip_prefix(word)).unwrap_or(rest);
    let place = rest.split(' ').next().unwrap_or_default();
    place.contains(['.', '/', '(', ':', '<', '\\']) || rest.ends_with(')')
}

/// Recognizes `shop.Cart.add(Cart.java:7)`.
fn is_java_frame(line: &str) -> bool {
    let Some((method, place)) = line.split_once('(') else { return false };
    let Some(place) = place.strip_suffix(')') else { return false };
    let is_place = ["Native Method", "Unknown Source"].contains(&place)
        || [".java", ".kt", ".scala", ".groovy"].iter().any(|language| place.contains(language));
    is_place && !method.contains(' ')
}

/// Recognizes `File "cart.py", line 7`, `cart.py:7: in add` and `cart.py:7: ValueError`.
fn is_python_frame(line: &str) -> bool {
    if line.starts_with("File \"") && line.contains("\", line ") {
        return true;
    }
    let Some((_, place)) = line.split_once(".py:") else { return false };
    let rest = place.trim_start_matches(|char: char| char.is_ascii_digit());
    let Some(rest) = rest.strip_prefix(':').filter(|_| rest.len() < place.len()) else {
        return false;
    };
    let rest = rest.trim();
    rest.is_empty() || rest.starts_with("in ") || !rest.contains(' ')
}

/// Recognizes `# ./spec/cart_spec.rb:7:in 'add'`.
fn is_ruby_frame(line: &str) -> bool {
    let place = line.split_once(".rb:").map_or("", |(_, place)| place);
    let rest = place.trim_start_matches(|char: char| char.is_ascii_digit());
    rest.len() < place.len() && (rest.is_empty() || rest.starts_with(":in "))
}

/// Recognizes `/home/ci/CartTest.php:7`.
fn is_position(line: &str) -> bool {
    let (path, number) = line.rsplit_once(':').unwrap_or_default();
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number && path.starts_with('/') && !path.contains(' ')
}

/// Returns whether a line ends with `:7:3`, which are a line and a column.
fn ends_with_position(line: &str) -> bool {
    let mut parts = line.rsplitn(3, ':');
    let mut is_number = || {
        let part = parts.next().unwrap_or_default();
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    is_number() && is_number()
}

#[cfg(test)]
mod tests {
    use super::is_frame;

    #[test]
    fn frames_of_all_languages_are_recognized() {
        let lines = [
            "at toBe (/home/ci/shop.test.js:3:138)",
            "at async Promise.all (index 0)",
            "at new Promise (<anonymous>)",
            "at Shop.Cart.Add() in /home/ci/Cart.cs:line 7",
            "at shop.CartTest.total(CartTest.java:7)",
            "shop.CartTest.total(CartTest.java:7)",
            "jdk.internal.reflect.NativeMethodAccessorImpl.invoke0(Native Method)",
            "... 23 more",
            "❯ shop.test.mjs:2:122",
            "File \"/home/ci/cart.py\", line 7, in add",
            "test_shop.py:20: AssertionError",
            "test_shop.py:20: in test_total",
            "# ./spec/cart_spec.rb:7:in `block (2 levels) in <top (required)>'",
            "/home/ci/CartTest.php:7",
            "goroutine 6 [running]:",
            "run@http://localhost:8080/cart.js:7:3",
            "#0 0x55d2c3a1e0a3 <unknown>",
            "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace",
        ];
        for line in lines {
            assert!(is_frame(line), "{line}");
        }
    }
}
