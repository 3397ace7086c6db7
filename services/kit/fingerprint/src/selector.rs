//! Selectors of elements, which belong to the cause.

/// Starts of lines that are a selector, in Playwright.
const LINES: [&str; 2] = ["Locator: ", "waiting for "];

/// Returns whether all of a line is a selector.
pub(crate) fn is_line(line: &str) -> bool {
    LINES.iter().any(|start| line.starts_with(start))
}

/// Returns the length in bytes of the selector that the rest of a line starts with, as far as there is
/// no space in it: `#row-3`, `//div[3]/span`. `before` is the character before it.
pub(crate) fn length(before: Option<char>, rest: &str) -> Option<usize> {
    let name = ["#", "//*", "//"].iter().find_map(|start| rest.strip_prefix(start))?;
    let is_start = !before.is_some_and(|char| char.is_alphanumeric() || ":/".contains(char));
    let is_selector =
        is_start && name.starts_with(|char: char| char.is_alphabetic() || char == '[');
    let is_end = |char: char| char.is_whitespace() || "{}\"'`<>,;".contains(char);
    is_selector.then(|| rest.find(is_end).unwrap_or(rest.len()))
}
