//! Texts of bounded size. NUL characters, which PostgreSQL cannot store, are replaced.

/// Replaces the characters that cannot be stored.
pub(crate) fn storable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// Appends as much of `more` as fits.
pub(crate) fn keep_beginning(text: &mut String, more: &str, largest: usize) {
    let room = largest.saturating_sub(text.len());
    text.push_str(&storable(&more[..more.floor_char_boundary(room)]));
    text.truncate(text.floor_char_boundary(largest));
}

/// Returns the beginning of a text.
pub(crate) fn beginning(text: &str, largest: usize) -> String {
    let mut kept = String::new();
    keep_beginning(&mut kept, text, largest);
    kept
}

/// Appends `more`, and removes the beginning if the text is too long.
pub(crate) fn keep_end(text: &mut String, more: &str, largest: usize) {
    let more = &more[more.ceil_char_boundary(more.len().saturating_sub(largest))..];
    text.push_str(&storable(more));
    let excess = text.ceil_char_boundary(text.len().saturating_sub(largest));
    text.drain(..excess);
}
