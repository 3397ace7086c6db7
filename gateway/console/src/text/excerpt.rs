//! The beginning and the end of texts that may be megabytes long.

use std::borrow::Cow;

/// Size of each end of a text that is shown, in bytes.
const END: usize = 16 << 10;

/// Size of each end once the page has many texts, in bytes.
const SHORT_END: usize = 512;

/// How many bytes of text a page may still show.
pub(crate) struct Allowance(usize);

impl Allowance {
    /// Returns the allowance of a page.
    pub(crate) fn of_page() -> Self {
        Self(64 << 10)
    }

    /// Cuts a text to a size that fits the page.
    pub(crate) fn cut<'a>(&mut self, text: &'a str) -> Excerpt<'a> {
        let end = if self.0 > 2 * END { END } else { SHORT_END };
        let excerpt = Excerpt::of(text, end);
        self.0 = self.0.saturating_sub(excerpt.head.len() + excerpt.tail.len());
        excerpt
    }
}

/// The beginning of a text, and its end if there is more between them.
#[derive(Debug, PartialEq)]
pub(crate) struct Excerpt<'a> {
    pub(crate) head: &'a str,
    pub(crate) tail: &'a str,
    /// Number of bytes between them.
    pub(crate) omitted: usize,
}

impl<'a> Excerpt<'a> {
    /// Cuts a text to at most two ends of this size.
    fn of(text: &'a str, end: usize) -> Self {
        if text.len() <= 2 * end {
            return Self { head: text, tail: "", omitted: 0 };
        }
        let head = &text[..text.floor_char_boundary(end)];
        let tail = &text[text.ceil_char_boundary(text.len() - end)..];
        Self { head, tail, omitted: text.len() - head.len() - tail.len() }
    }
}

/// Returns the beginning of a text of which a page may show many.
pub(crate) fn beginning(text: &str) -> Cow<'_, str> {
    let kept = &text[..text.floor_char_boundary(2 * SHORT_END)];
    if kept.len() == text.len() { text.into() } else { format!("{kept}…").into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_keeps_both_ends() {
        assert_eq!(Excerpt::of("abcdef", 3), Excerpt { head: "abcdef", tail: "", omitted: 0 });
        assert_eq!(Excerpt::of("abcdefg", 3), Excerpt { head: "abc", tail: "efg", omitted: 1 });
    }

    #[test]
    fn one_of_many_texts_is_short() {
        assert_eq!(beginning("a short text"), "a short text");
        let shown = beginning(&"é".repeat(32 << 10)).into_owned();
        assert!(shown.len() < 1100 && shown.ends_with("é…"), "{}", shown.len());
    }

    #[test]
    fn characters_stay_whole() {
        let Excerpt { head, tail, omitted } = Excerpt::of("éééé", 3);
        assert_eq!((head, tail, omitted), ("é", "é", 4));
    }

    #[test]
    fn a_page_with_many_long_texts_is_bounded() {
        let (mut rest, text) = (Allowance::of_page(), "x".repeat(1 << 20));
        let shown = |excerpt: Excerpt<'_>| excerpt.head.len() + excerpt.tail.len();
        let total: usize = (0..50).map(|_| shown(rest.cut(&text))).sum();
        assert!(total < 128 << 10, "{total}");
    }
}
