//! Resolves references to characters and entities in texts and attributes.

use std::borrow::Cow;

use quick_xml::escape::resolve_predefined_entity;

use crate::decoded::{REPLACEMENT, Replaced};

/// The first half of a character, whose second half may follow: .NET and Java write characters outside
/// of the Basic Multilingual Plane as two references.
#[derive(Default)]
pub(super) struct Half(Option<u32>);

impl Half {
    /// Appends what a reference stands for. One that is not known stays as it is.
    pub(super) fn resolve(&mut self, reference: &str, text: &mut String, replaced: &Replaced) {
        let code = reference.strip_prefix('#').and_then(code);
        if let Some(low @ 0xdc00..0xe000) = code
            && let Some(high) = self.0.take()
        {
            let code = 0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00);
            text.extend(char::from_u32(code));
            return;
        }
        self.end(text, replaced);
        match code {
            Some(high @ 0xd800..0xdc00) => self.0 = Some(high),
            Some(code) => match char::from_u32(code).filter(|char| *char != '\0') {
                Some(char) => text.push(char),
                None => replace(text, replaced),
            },
            None => match resolve_predefined_entity(reference) {
                Some(entity) => text.push_str(entity),
                None if reference.starts_with('#') => replace(text, replaced),
                None => {
                    text.push('&');
                    text.push_str(reference);
                    text.push(';');
                }
            },
        }
    }

    /// Replaces the first half of a character without a second one.
    pub(super) fn end(&mut self, text: &mut String, replaced: &Replaced) {
        if self.0.take().is_some() {
            replace(text, replaced);
        }
    }
}

fn replace(text: &mut String, replaced: &Replaced) {
    text.push_str(REPLACEMENT);
    replaced.add(1);
}

/// Parses the code of a reference. One beyond Unicode is not a character.
fn code(reference: &str) -> Option<u32> {
    let hexadecimal = reference.strip_prefix(['x', 'X']);
    let code = match hexadecimal {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => reference.parse(),
    };
    code.ok()
}

/// Returns the value of an attribute: references are resolved, and white space that is not a reference
/// is a space.
pub(super) fn value<'v>(raw: &'v str, replaced: &Replaced) -> Cow<'v, str> {
    let is_plain = |byte: u8| !matches!(byte, b'&' | b'\n' | b'\t' | b'\r');
    if raw.bytes().all(is_plain) {
        return Cow::Borrowed(raw);
    }
    let (mut text, mut rest, mut half) = (String::with_capacity(raw.len()), raw, Half::default());
    while let Some(position) = rest.find(['&', '\n', '\t', '\r']) {
        let (before, after) = rest.split_at(position);
        if !before.is_empty() {
            half.end(&mut text, replaced);
        }
        text.push_str(before);
        rest = &after[1..];
        let reference = after.strip_prefix('&').map(|rest| rest.split_once(';'));
        match reference {
            Some(Some((reference, after))) if is_name(reference) => {
                half.resolve(reference, &mut text, replaced);
                rest = after;
            }
            Some(_) => {
                half.end(&mut text, replaced);
                text.push('&');
            }
            None => {
                half.end(&mut text, replaced);
                // A line end of two characters is one.
                if !(after.starts_with('\r') && rest.starts_with('\n')) {
                    text.push(' ');
                }
            }
        }
    }
    if !rest.is_empty() {
        half.end(&mut text, replaced);
    }
    text.push_str(rest);
    half.end(&mut text, replaced);
    Cow::Owned(text)
}

/// Returns whether a text can be the name of a reference.
fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'#' | b'_' | b'.' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_resolved_and_others_tolerated() {
        for (raw, expected, count) in [
            ("a &lt;b&gt; &amp; &#65;&#x42;", "a <b> & AB", 0),
            ("pays with &#55357;&#56832;", "pays with 😀", 0),
            ("&#xD83D;x&#56832;&#55357;", "\u{fffd}x\u{fffd}\u{fffd}", 3),
            ("nul &#0; and &#x110000;", "nul \u{fffd} and \u{fffd}", 2),
            ("A & B, &nbsp;&; 50% &", "A & B, &nbsp;&; 50% &", 0),
            ("one\r\ntwo\tthree&#10;four", "one two three\nfour", 0),
        ] {
            let replaced = Replaced::default();
            assert_eq!(value(raw, &replaced), expected);
            assert_eq!(replaced.count(), count, "{raw}");
        }
    }
}
