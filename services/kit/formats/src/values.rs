//! Parses names and attachments as tools write them.

use base64::{Engine, prelude::BASE64_STANDARD};

use crate::{
    Content, Nature, Problem,
    limits::{INLINE, MESSAGE},
    texts::beginning,
};

/// Returns class and name of a pytest test, as pytest writes them into JUnit reports, from its node
/// id: `tests/test_shop.py::TestCart::test_pay[visa]`.
pub(crate) fn pytest_names(node: &str) -> Option<(String, String)> {
    let (path, parameters) = node.split_at(node.find('[').unwrap_or(node.len()));
    let (class, name) = path.rsplit_once("::")?;
    let (file, classes) = class.split_once("::").unwrap_or((class, ""));
    let module = file.strip_suffix(".py")?.replace('/', ".");
    let class = if classes.is_empty() {
        module
    } else {
        format!("{module}.{}", classes.replace("::", "."))
    };
    Some((class, format!("{name}{parameters}")))
}

/// Returns the contents of an attachment in Base64, if it is complete and there is room for it.
pub(crate) fn inline(base64: &str, room: &mut usize) -> Content {
    match BASE64_STANDARD.decode(base64) {
        Ok(bytes) if bytes.len() <= INLINE.min(*room) => {
            *room -= bytes.len();
            Content::Inline(bytes)
        }
        _ => Content::Dropped,
    }
}

/// Returns a text without the colours of a terminal, which JavaScript tools write into messages.
pub(crate) fn without_colours(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        plain.push_str(before);
        let end = after.find(|char: char| char.is_ascii_alphabetic());
        rest = end.map_or("", |end| &after[end + 1..]);
    }
    plain + rest
}

/// Returns the problem that the stack of a JavaScript error describes. It begins with the message.
pub(crate) fn javascript_problem(nature: Nature, stack: &str) -> Problem {
    let text = without_colours(stack);
    let message = text.split("\n    at ").next().unwrap_or_default().trim();
    let message = beginning(message, MESSAGE);
    let text = if text.trim() == message { String::new() } else { text };
    Problem { nature, message, text }
}

/// Returns a name without line breaks, which XML reports have as spaces.
pub(crate) fn one_line(name: &str) -> String {
    name.replace("\r\n", " ").replace(['\r', '\n'], " ")
}
