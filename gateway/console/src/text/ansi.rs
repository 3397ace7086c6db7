//! Output of terminals: colours become classes, all other control sequences are dropped.

use anstyle_parse::{Params, Parser, Perform, Utf8Parser};
use maud::Render;

use super::plain::Writer;

/// Renders an untrusted text that may contain the escape sequences of terminals.
pub(crate) fn ansi(text: &str) -> Ansi<'_> {
    Ansi(text)
}

pub(crate) struct Ansi<'a>(&'a str);

/// Maximum number of changes of the style in one text. Further ones are ignored, so that a hostile
/// text does not become many times as long.
const CHANGES: usize = 1000;

impl Render for Ansi<'_> {
    fn render_to(&self, html: &mut String) {
        let mut screen = Screen::new(html);
        let mut parser = Parser::<Utf8Parser>::new();
        for byte in self.0.bytes() {
            parser.advance(&mut screen, byte);
        }
        screen.close();
    }
}

/// Kinds of emphasis: the code that starts it, the one that ends it, and the class.
const EMPHASIS: [(u16, u16, &str); 4] =
    [(1, 22, "ab"), (2, 22, "ad"), (3, 23, "ai"), (4, 24, "au")];

/// The style of characters.
#[derive(Clone, Copy, Default, PartialEq)]
struct Style {
    /// Whether each kind of emphasis applies.
    emphasis: [bool; EMPHASIS.len()],
    /// Colour of the text, from 0 to 15.
    colour: Option<u16>,
}

impl Style {
    /// Applies the parameters of `SGR`, the sequence that changes the style.
    fn apply(&mut self, params: &Params) {
        let mut codes = params.iter().map(|param| param.first().copied().unwrap_or_default());
        while let Some(code) = codes.next() {
            match code {
                0 => *self = Self::default(),
                1..=4 | 22..=24 => self.emphasise(code),
                30..=37 => self.colour = Some(code - 30),
                90..=97 => self.colour = Some(code - 90 + 8),
                39 => self.colour = None,
                38 => self.colour = indexed(&mut codes),
                48 => drop(indexed(&mut codes)),
                _ => {}
            }
        }
    }

    fn emphasise(&mut self, code: u16) {
        for (applies, (start, end, _)) in self.emphasis.iter_mut().zip(EMPHASIS) {
            *applies = (*applies || code == start) && code != end;
        }
    }

    fn classes(self) -> String {
        let emphasis = self.emphasis.into_iter().zip(EMPHASIS).filter(|(applies, _)| *applies);
        let emphasis = emphasis.map(|(_, (_, _, class))| class.to_owned());
        let colour = self.colour.map(|colour| format!("a{colour}"));
        emphasis.chain(colour).collect::<Vec<_>>().join(" ")
    }
}

/// Reads the rest of `38;5;n` or `38;2;r;g;b`. Only the 16 colours of the palette are shown, because
/// others may be unreadable on the page.
fn indexed(codes: &mut impl Iterator<Item = u16>) -> Option<u16> {
    match codes.next() {
        Some(5) => codes.next().filter(|colour| *colour < 16),
        Some(2) => {
            codes.by_ref().take(3).for_each(drop);
            None
        }
        _ => None,
    }
}

struct Screen<'a> {
    html: &'a mut String,
    writer: Writer,
    /// The style of the following characters.
    style: Style,
    /// The style of the element that is open.
    open: Style,
    changes: usize,
}

impl<'a> Screen<'a> {
    fn new(html: &'a mut String) -> Self {
        let (writer, style, open) = Default::default();
        Self { html, writer, style, open, changes: 0 }
    }

    /// Opens an element with the current style unless one is open.
    fn restyle(&mut self) {
        if self.style == self.open || self.changes == CHANGES {
            return;
        }
        self.close();
        self.changes += 1;
        if self.style != Style::default() {
            self.html.push_str("<span class=\"");
            self.html.push_str(&self.style.classes());
            self.html.push_str("\">");
        }
        self.open = self.style;
    }

    fn close(&mut self) {
        if self.open != Style::default() {
            self.html.push_str("</span>");
            self.open = Style::default();
        }
    }
}

impl Perform for Screen<'_> {
    fn print(&mut self, char: char) {
        self.restyle();
        self.writer.push(char, self.html);
    }

    fn execute(&mut self, byte: u8) {
        if matches!(byte, b'\n' | b'\t') {
            self.html.push(char::from(byte));
        }
    }

    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], _: bool, action: u8) {
        if action == b'm' && intermediates.is_empty() {
            if params.is_empty() {
                self.style = Style::default();
            } else {
                self.style.apply(params);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        ansi(text).render().into_string()
    }

    #[test]
    fn colours_become_classes() {
        for (text, expected) in [
            ("\u{1b}[31mred\u{1b}[0m", "<span class=\"a1\">red</span>"),
            (
                "\u{1b}[1;32mok\u{1b}[22m.",
                "<span class=\"ab a2\">ok</span><span class=\"a2\">.</span>",
            ),
            ("\u{1b}[91mred\u{1b}[39m.", "<span class=\"a9\">red</span>."),
            ("\u{1b}[38;5;3mx\u{1b}[m", "<span class=\"a3\">x</span>"),
            ("\u{1b}[38;5;200mx", "x"),
            ("\u{1b}[38;2;1;2;3;1mx", "<span class=\"ab\">x</span>"),
            ("\u{1b}[48;5;1mx", "x"),
            ("\u{1b}[31mnever closed", "<span class=\"a1\">never closed</span>"),
        ] {
            assert_eq!(shown(text), expected, "{text:?}");
        }
    }

    #[test]
    fn other_sequences_and_controls_are_dropped() {
        for (text, expected) in [
            ("a\u{1b}[2Jb\u{1b}[10;5Hc", "abc"),
            ("a\u{1b}]8;;https://evil.test\u{7}link\u{1b}]8;;\u{7}", "alink"),
            ("a\u{1b}]0;title\u{1b}\\b", "ab"),
            ("a\u{8}\u{0}\r\nb\tc", "a\nb\tc"),
            ("\u{1b}P1;2|payload\u{1b}\\x", "x"),
            ("trailing \u{1b}[", "trailing "),
        ] {
            assert_eq!(shown(text), expected, "{text:?}");
        }
    }

    #[test]
    fn markup_is_escaped_within_colours() {
        let text = "\u{1b}[31m<script>alert(1)</script>";
        assert_eq!(shown(text), "<span class=\"a1\">&lt;script&gt;alert(1)&lt;/script&gt;</span>");
    }

    #[test]
    fn characters_that_change_the_direction_are_visible() {
        assert_eq!(shown("é\u{202e}x"), "é<span class=\"ctl\">U+202E</span>x");
    }

    #[test]
    fn a_text_with_many_colours_stays_short() {
        let hostile = "\u{1b}[31ma\u{1b}[32mb".repeat(10_000);
        assert!(shown(&hostile).len() < hostile.len());
    }

    /// Removes the elements that the functions of this crate write, and returns the rest.
    fn without_own_elements(html: &str) -> String {
        let mut rest = html.replace("</span>", "");
        while let Some((before, after)) = rest.split_once("<span class=\"") {
            let (class, after) = after.split_once("\">").unwrap();
            assert!(class.chars().all(|char| char.is_ascii_alphanumeric() || char == ' '));
            rest = format!("{before}{after}");
        }
        rest
    }

    proptest::proptest! {
        #[test]
        fn no_text_contains_markup(text in "[\u{1b}\\[\\]0-9;m<>\"'&a-zé\u{202e}\u{9b}\n\r]{0,80}") {
            for html in [shown(&text), super::super::plain(&text).render().into_string()] {
                let opened = html.matches("<span").count();
                assert_eq!(opened, html.matches("</span>").count(), "{html}");
                let rest = without_own_elements(&html);
                assert!(!rest.contains(['<', '>', '\u{1b}', '\r', '\u{202e}']), "{html}");
            }
        }
    }
}
