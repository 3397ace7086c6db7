//! Lines of a text, and the order of their parts.

use std::iter;

use unicode_bidi::BidiInfo;
use unicode_linebreak::linebreaks;

use super::font::{Fonts, Style};

/// Maximum number of characters of a long word in a line.
const MOST: usize = 500;

/// Breaks a text into lines of at most `width` sizes of the font. Words that are longer are divided.
pub(super) fn lines(fonts: &Fonts, style: Style, text: &str, width: f32) -> Vec<String> {
    text.split('\n').flat_map(|paragraph| of_paragraph(fonts, style, paragraph, width)).collect()
}

fn of_paragraph(fonts: &Fonts, style: Style, text: &str, width: f32) -> Vec<String> {
    let text = fonts.shown(text);
    let (mut lines, mut line, mut used) = (Vec::new(), String::new(), 0.0);
    let ends = linebreaks(&text).map(|(end, _)| end);
    let words = ends.scan(0, |start, end| Some(&text[std::mem::replace(start, end)..end]));
    for word in words.flat_map(|word| divided(fonts, style, word, width)) {
        let (visible, whole) = (fonts.width(style, word.trim_end()), fonts.width(style, word));
        if used + visible > width && !line.is_empty() {
            lines.push(std::mem::take(&mut line));
            used = 0.0;
        }
        line.push_str(word);
        used += whole;
    }
    lines.push(line);
    lines.into_iter().map(|line| line.trim_end().to_owned()).collect()
}

/// Divides a word that does not fit into a line, where its parts join if possible.
fn divided<'a>(fonts: &Fonts, style: Style, word: &'a str, width: f32) -> Vec<&'a str> {
    // A line has fewer characters, so there is nothing to measure.
    let is_long = |part: &str| part.len() > 2000 || fonts.width(style, part.trim_end()) > width;
    if !is_long(word) {
        return vec![word];
    }
    let mut parts = Vec::new();
    for mut rest in joined(word) {
        while is_long(rest)
            && let Some(end) = fitting(fonts, style, rest, width)
        {
            parts.push(&rest[..end]);
            rest = &rest[end..];
        }
        parts.push(rest);
    }
    parts
}

/// Returns the parts of a path, an address or an identifier, each with the signs behind it.
fn joined(word: &str) -> impl Iterator<Item = &str> {
    let is_joint = |char| {
        matches!(char, '_' | '.' | ':' | '/' | '\\' | '-' | ',' | ';' | '=' | '&' | '?' | '@' | '|')
    };
    let mut rest = word;
    iter::from_fn(move || {
        let signs = rest.find(is_joint).unwrap_or(rest.len());
        let behind = rest[signs..].find(|char| !is_joint(char));
        let (part, others) = rest.split_at(behind.map_or(rest.len(), |behind| signs + behind));
        rest = others;
        Some(part).filter(|part| !part.is_empty())
    })
}

/// Returns the end of the longest beginning of a text that fits into a line, or of its first character. Returns nothing
/// for a text of one character.
fn fitting(fonts: &Fonts, style: Style, text: &str, width: f32) -> Option<usize> {
    let ends = text.char_indices().skip(1).take(MOST).map(|(end, _)| end);
    let ends: Vec<usize> = ends.collect();
    let fit = ends.partition_point(|end| fonts.width(style, &text[..*end]) <= width);
    ends.get(fit.saturating_sub(1)).copied()
}

/// A part of a line in one font and direction.
pub(super) struct Run<'a> {
    pub(super) text: &'a str,
    pub(super) style: Style,
    pub(super) right_to_left: bool,
}

/// Returns the parts of a line from left to right.
pub(super) fn runs<'a>(fonts: &Fonts, style: Style, line: &'a str) -> Vec<Run<'a>> {
    if line.is_ascii() {
        return vec![Run { text: line, style, right_to_left: false }];
    }
    let bidi = BidiInfo::new(line, None);
    let of_paragraph = bidi.paragraphs.iter().flat_map(|paragraph| {
        let (levels, ranges) = bidi.visual_runs(paragraph, paragraph.range.clone());
        ranges.into_iter().map(move |range| (levels[range.start].is_rtl(), range))
    });
    let of_direction = of_paragraph.flat_map(|(right_to_left, range)| {
        let mut runs = in_fonts(fonts, style, &line[range]);
        if right_to_left {
            runs.reverse();
        }
        runs.into_iter().map(move |(text, style)| Run { text, style, right_to_left })
    });
    of_direction.collect()
}

/// Divides a text between words where the font changes.
fn in_fonts<'a>(fonts: &Fonts, style: Style, text: &'a str) -> Vec<(&'a str, Style)> {
    let mut words = text.split_inclusive(' ').map(|word| (word, fonts.fitting(style, word)));
    let mut runs = Vec::new();
    let Some((first, mut current)) = words.next() else { return runs };
    let (mut start, mut end) = (0, first.len());
    for (word, style) in words {
        if style != current {
            runs.push((&text[start..end], current));
            (start, current) = (end, style);
        }
        end += word.len();
    }
    runs.push((&text[start..end], current));
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words() {
        let fonts = Fonts::load().unwrap();
        let lines = lines(&fonts, Style::Sans, "the shop confirms the order\n\nend", 10.0);
        assert_eq!(lines, ["the shop confirms", "the order", "", "end"]);
    }

    #[test]
    fn long_words_are_divided() {
        let fonts = Fonts::load().unwrap();
        for word in
            ["x".repeat(100_000), "ä".repeat(10_000), "\u{202e}漢".repeat(5_000), "ب".repeat(5_000)]
        {
            let lines = lines(&fonts, Style::Mono, &word, 30.0);
            // Letters that join are wider or narrower than apart.
            assert!(lines.iter().all(|line| fonts.width(Style::Mono, line) <= 33.0));
            assert_eq!(lines.concat().chars().count(), fonts.shown(&word).chars().count());
        }
    }

    #[test]
    fn paths_are_divided_where_their_parts_join() {
        let fonts = Fonts::load().unwrap();
        let path = "rules::tests::the_worst_result_wins/in/any/order";
        let lines = lines(&fonts, Style::Mono, path, 12.5);
        assert_eq!(lines, ["rules::tests::the_", "worst_result_wins/", "in/any/order"]);
    }

    #[test]
    fn a_line_too_narrow_for_a_character_has_one() {
        let fonts = Fonts::load().unwrap();
        assert_eq!(lines(&fonts, Style::Sans, "abc", 0.1), ["a", "b", "c"]);
    }

    #[test]
    fn words_from_right_to_left_are_in_visual_order() {
        let fonts = Fonts::load().unwrap();
        let runs = runs(&fonts, Style::Sans, "total: שלום עולם 7");
        assert_eq!(runs[0].text, "total: ");
        assert!(runs.iter().any(|run| run.right_to_left && run.text.contains("שלום")));
        assert_eq!(
            runs.iter().map(|run| run.text.len()).sum::<usize>(),
            "total: שלום עולם 7".len()
        );
    }
}
