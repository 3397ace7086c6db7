//! Texts of messages: words of Assay, and names that others have chosen.

use url::Url;

/// Maximum length of a name in a message, in characters.
const LONGEST_NAME: usize = 150;

/// A part of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Span {
    /// Words of Assay.
    Words(String),
    /// A name that somebody has chosen. Every format shows it literally.
    Name(String),
    /// A link with words of Assay.
    Link(String, Url),
}

/// A line of a message.
pub(super) type Line = Vec<Span>;

pub(super) fn words(text: impl Into<String>) -> Span {
    Span::Words(text.into())
}

/// Returns a name on one line, without characters that are invisible or change the direction of text.
pub(super) fn name(text: &str) -> Span {
    let mut plain = String::new();
    for char in text.chars().filter(|char| !is_invisible(*char)) {
        let char = if char.is_whitespace() || char.is_control() { ' ' } else { char };
        if char != ' ' || !plain.ends_with(' ') {
            plain.push(char);
        }
    }
    let plain = plain.trim();
    Span::Name(match plain.char_indices().nth(LONGEST_NAME) {
        Some((end, _)) => format!("{}…", &plain[..end]),
        None => plain.to_owned(),
    })
}

/// Returns a link, if the URL is one of the Web.
pub(super) fn link(label: &str, url: &str) -> Option<Span> {
    let url = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    (url.username().is_empty() && url.password().is_none())
        .then(|| Span::Link(label.to_owned(), url))
}

/// Characters without width, and those that embed or override a direction.
fn is_invisible(char: char) -> bool {
    matches!(char,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

impl Span {
    /// Returns the text as a reader sees it.
    pub(super) fn text(&self) -> &str {
        let (Self::Words(text) | Self::Name(text) | Self::Link(text, _)) = self;
        text
    }

    /// Returns the size in bytes, with the URL of a link.
    pub(super) fn size(&self) -> usize {
        let url = if let Self::Link(_, url) = self { url.as_str().len() } else { 0 };
        self.text().len() + url
    }

    /// Returns Markdown of Mattermost or Discord. A name is code, in which there are neither links, mentions
    /// nor markup.
    pub(super) fn markdown(&self) -> String {
        match self {
            Self::Words(text) => text.clone(),
            Self::Name(text) if text.is_empty() => String::new(),
            Self::Name(text) => format!("`{}`", text.replace('`', "\u{2bc}")),
            Self::Link(text, url) => {
                let url = url.as_str().replace('(', "%28").replace(')', "%29");
                format!("[{text}]({url})")
            }
        }
    }
}

/// Returns a line as plain text.
pub(super) fn text(line: &[Span]) -> String {
    line.iter().map(Span::text).collect()
}

/// Returns a line as Markdown of Mattermost or Discord.
pub(super) fn markdown(line: &[Span]) -> String {
    line.iter().map(Span::markdown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_one_line_and_only_visible_characters() {
        let of = |text: &str| name(text).text().to_owned();
        assert_eq!(of("a\n\tb\u{202e}c\u{200b}\0"), "a bc");
        assert_eq!(of(&"ä".repeat(200)).chars().count(), 151);
        assert_eq!(of(" \n "), "");
    }

    #[test]
    fn names_are_code_in_markdown_and_cannot_leave_it() {
        let hostile = "@channel `**x** [a](http://evil.example) <b>";
        assert_eq!(
            name(hostile).markdown(),
            "`@channel \u{2bc}**x** [a](http://evil.example) <b>`"
        );
    }

    #[test]
    fn only_urls_of_the_web_are_links() {
        let good = link("CI", "https://ci.example/a(b)").unwrap();
        assert_eq!(good.markdown(), "[CI](https://ci.example/a%28b%29)");
        for wrong in
            ["javascript:alert(1)", "file:///etc/passwd", "https://ada:pw@ci.example", "x", ""]
        {
            assert_eq!(link("CI", wrong), None, "{wrong}");
        }
    }
}
