//! Quoted values, which belong to the cause: a selector, a key or an expected text.

/// The quotation that a position is in, within a line.
#[derive(Default)]
pub(crate) struct Quotes {
    open: Option<char>,
}

impl Quotes {
    /// Returns whether the position is between quotation marks.
    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Passes a character, which follows `before` and precedes `rest`. An apostrophe as in `can't` and
    /// a mark without a counterpart are not quotation marks.
    pub(crate) fn pass(&mut self, before: Option<char>, char: char, rest: &str) {
        match self.open {
            Some(mark) if mark == char && before != Some('\\') => self.open = None,
            None if is_mark(char) && opens(before) && rest.contains(char) => self.open = Some(char),
            _ => {}
        }
    }
}

fn is_mark(char: char) -> bool {
    matches!(char, '\'' | '"' | '`')
}

fn opens(before: Option<char>) -> bool {
    !before.is_some_and(char::is_alphanumeric)
}
