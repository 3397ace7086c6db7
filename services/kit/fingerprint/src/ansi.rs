//! Plain text of output that was written for a terminal.

/// The escape character, and how tools write it into XML, which cannot contain it.
const ESCAPES: [&str; 3] = ["\u{1b}", "#x1B", "\\u001b"];

/// Removes escape sequences and control characters. Lines end with a line feed, and tabs become
/// spaces.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(char) = rest.chars().next() {
        if let Some(after) = without_sequence(rest) {
            rest = after;
            continue;
        }
        rest = &rest[char.len_utf8()..];
        match char {
            '\r' if rest.starts_with('\n') => {}
            '\r' | '\n' => plain.push('\n'),
            '\t' | '\u{a0}' => plain.push(' '),
            '\u{200b}'..='\u{200f}' | '\u{feff}' => {}
            char if char.is_control() => {}
            char => plain.push(char),
        }
    }
    plain
}

/// Returns what follows the escape sequence that a text starts with.
fn without_sequence(text: &str) -> Option<&str> {
    let Some(after) = ESCAPES.iter().find_map(|escape| text.strip_prefix(escape)) else {
        return without_colour(text);
    };
    match after.bytes().next() {
        Some(b'[') => Some(without_control(&after[1..])),
        Some(b']') if text.starts_with('\u{1b}') => Some(without_command(&after[1..])),
        _ => text.starts_with('\u{1b}').then_some(after),
    }
}

/// Skips the parameters and the final letter of a control sequence.
fn without_control(text: &str) -> &str {
    let after = text.trim_start_matches(|char: char| matches!(char, ' '..='?'));
    after.strip_prefix(|char: char| matches!(char, '@'..='~')).unwrap_or(after)
}

/// Skips the text of a command, such as the target of a link, up to its end or that of the line.
fn without_command(text: &str) -> &str {
    let end = text.find(['\u{7}', '\u{1b}', '\n']).unwrap_or(text.len());
    let after = &text[end..];
    after.strip_prefix('\u{7}').or_else(|| after.strip_prefix("\u{1b}\\")).unwrap_or(after)
}

/// Skips a colour such as `[31m`, of which XML lost the escape character. `[5m]` is a duration.
fn without_colour(text: &str) -> Option<&str> {
    let after = text.strip_prefix('[')?;
    let codes = after.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b';').count();
    let rest = after[codes..].strip_prefix('m')?;
    let is_colour = (1..=12).contains(&codes) && !rest.starts_with(']');
    is_colour.then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn sequences_and_controls_are_removed() {
        let texts = [
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("\u{1b}[38;5;9;1mred\u{1b}[K", "red"),
            ("#x1B[31mred#x1B[39m", "red"),
            ("[31mred[39;49m", "red"),
            ("rate(x[5m])", "rate(x[5m])"),
            ("\u{1b}]8;;https://shop.test\u{1b}\\link\u{1b}]8;;\u{7}", "link"),
            ("a\r\nb\rc\0\u{8}d\te", "a\nb\ncd e"),
            ("\u{1b}", ""),
            ("\u{1b}[", ""),
        ];
        for (text, expected) in texts {
            assert_eq!(plain(text), expected, "{text:?}");
        }
    }
}
