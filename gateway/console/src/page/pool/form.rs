//! The form of a value of a pool. Its contents are sent one after the other: variable, then content or secret. A
//! secret that was typed is never shown.

use maud::{Markup, html};

use crate::{
    page::{part::text_field, version::Version},
    record::{PoolContent, PoolValue},
    text::clean,
};

/// The empty contents in a form, by whether they are secret.
const EMPTY: [bool; 2] = [false, true];

/// Maximum number of contents of a value.
const MOST: usize = 20;

/// The fields, as they were entered.
#[derive(Default)]
pub(super) struct Entry {
    /// The name of the pool, in the forms that have it.
    pub(super) name: String,
    /// The version of the pool.
    pub(super) version: Version,
    /// The id of the value; empty for a new one, and absent without one.
    pub(super) value: Option<String>,
    /// Whether the value is to be removed.
    pub(super) remove: bool,
    pub(super) contents: Vec<PoolContent>,
}

impl Entry {
    pub(super) fn read(pairs: Vec<(String, String)>) -> Self {
        let mut entry = Self::default();
        for (field, text) in pairs {
            match (field.as_str(), entry.contents.last_mut()) {
                ("name", _) => entry.name = text,
                ("version" | "replaced", _) => entry.version.read(&field, &text),
                ("value", _) => entry.value = Some(text),
                ("remove", _) => entry.remove = true,
                ("variable", _) => {
                    let name = text.trim().to_owned();
                    entry.contents.push(PoolContent { name, ..PoolContent::default() });
                }
                // Browsers send the ends of lines as two characters.
                ("content", Some(last)) => last.content = text.replace("\r\n", "\n"),
                ("secret", Some(last)) => {
                    (last.content, last.is_secured) = (text, true);
                }
                _ => {}
            }
        }
        entry.contents.retain(|one| !one.name.is_empty() || !one.content.is_empty());
        entry
    }

    /// Returns the value that the form shows.
    pub(super) fn of(value: &PoolValue) -> Self {
        let (value, contents) = (Some(value.id.clone()), value.contents.clone());
        Self { value, contents, ..Self::default() }
    }

    /// Returns whether the pool does not have the value any more.
    pub(super) fn is_gone(&self, values: &[PoolValue]) -> bool {
        let id = self.value.as_deref().filter(|id| !id.is_empty());
        id.is_some_and(|id| values.iter().all(|value| value.id != id))
    }

    /// Returns the form of a new value with what was entered for one that is gone. Its secrets, which nobody can see,
    /// have to be typed again.
    pub(super) fn renewed(self) -> Self {
        let contents = self.contents.into_iter().map(|mut one| {
            if one.is_secured && is_hidden(&one.content) {
                one.content.clear();
            }
            one
        });
        Self { value: Some(String::new()), contents: contents.collect(), ..Self::default() }
    }

    /// Returns the form of a new value with the variables of another one.
    pub(super) fn like(value: Option<&PoolValue>) -> Self {
        let contents = value.into_iter().flat_map(|value| &value.contents);
        let empty = |one: &PoolContent| PoolContent { content: String::new(), ..one.clone() };
        let contents = contents.map(empty).collect();
        Self { value: Some(String::new()), contents, ..Self::default() }
    }

    /// Changes the values of a pool as it was entered, and returns the index of the value. Returns `None` if
    /// the pool does not have it any more.
    pub(super) fn apply_to(&self, values: &mut Vec<PoolValue>) -> Option<usize> {
        let id = self.value.clone().unwrap_or_default();
        if id.is_empty() {
            values.push(PoolValue { id, contents: self.contents.clone() });
            return Some(values.len() - 1);
        }
        let index = values.iter().position(|value| value.id == id)?;
        if self.remove {
            values.remove(index);
            return Some(index);
        }
        let before = &values[index].contents;
        let contents = self.contents.iter().map(|one| unless_unchanged(one, before)).collect();
        values[index].contents = contents;
        Some(index)
    }
}

/// Returns an entered content, in which texts that the form has shown so are the stored ones: it makes some
/// characters visible.
fn unless_unchanged(entered: &PoolContent, stored: &[PoolContent]) -> PoolContent {
    let PoolContent { mut name, mut content, is_secured } = entered.clone();
    let before = stored.iter().find(|before| clean(&before.name).trim() == name);
    if let Some(before) = before {
        name.clone_from(&before.name);
        if clean(&before.content) == content {
            content.clone_from(&before.content);
        }
    }
    PoolContent { name, content, is_secured }
}

/// The fields of the contents, and empty ones.
pub(super) fn fields(contents: &[PoolContent]) -> Markup {
    let empty = EMPTY.map(|is_secured| PoolContent { is_secured, ..PoolContent::default() });
    let empty = &empty[..EMPTY.len().min(MOST.saturating_sub(contents.len()))];
    html! {
        @for (index, content) in contents.iter().chain(empty).enumerate() {
            div.filters role="group" aria-label=(format!("Content {}", index + 1)) {
                (text_field("variable", "Variable (empty: all others)", Some(&content.name)))
                @if content.is_secured { (secret(&content.content)) } @else {
                    label.field.wide {
                        span { "Content" }
                        textarea name="content" rows="1" autocomplete="off" spellcheck="false" {
                            // Browsers drop the first end of a line.
                            "\n" (clean(&content.content))
                        }
                    }
                }
            }
        }
    }
}

/// The field of a secret. One that was typed before, in a form that was refused, has to be typed again.
fn secret(content: &str) -> Markup {
    let is_stored = is_hidden(content);
    html! {
        label.field.wide {
            span { "Secret" }
            input type="password" name="secret" autocomplete="new-password" required[!is_stored]
                value=(if is_stored { content } else { "" });
        }
    }
}

/// Returns whether asterisks stand for a secret, or nothing was typed.
fn is_hidden(content: &str) -> bool {
    content.chars().all(|character| character == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(name: &str, content: &str, is_secured: bool) -> PoolContent {
        PoolContent { name: name.to_owned(), content: content.to_owned(), is_secured }
    }

    fn read(pairs: &[(&str, &str)]) -> Entry {
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Entry::read(pairs.collect())
    }

    #[test]
    fn contents_follow_each_other_and_empty_ones_are_left_out() {
        let entry = read(&[
            ("value", ""),
            ("variable", " USER "),
            ("content", "ada"),
            ("variable", "KEY"),
            ("content", "a\r\nb"),
            ("variable", "PIN"),
            ("secret", "1234"),
            ("variable", ""),
            ("content", ""),
            ("variable", ""),
            ("secret", ""),
        ]);
        let [user, key] = [content("USER", "ada", false), content("KEY", "a\nb", false)];
        assert_eq!(entry.contents, [user, key, content("PIN", "1234", true)]);
        let mut values = Vec::new();
        assert_eq!(entry.apply_to(&mut values), Some(0));
        assert_eq!(values[0].contents.len(), 3);
    }

    #[test]
    fn a_secret_that_was_typed_is_not_shown() {
        let html = fields(&[content("PIN", "1234", true), content("KEY", "********", true)]);
        let html = html.into_string();
        assert!(!html.contains("1234"), "{html}");
        assert!(
            html.contains("required value=\"\"") && html.contains("value=\"********\""),
            "{html}"
        );
        // Each form has an empty content and an empty secret, which may stay empty.
        assert_eq!((html.matches("<textarea").count(), html.matches("password\"").count()), (1, 6));
    }

    #[test]
    fn a_content_that_was_not_changed_stays_as_it_is() {
        let stored =
            PoolValue { id: "7".into(), contents: vec![content(" A", "\u{202e}x\r", true)] };
        let mut values = vec![stored];
        let same = [("value", "7"), ("variable", "A"), ("content", "U+202Ex")];
        assert_eq!(read(&same).apply_to(&mut values), Some(0));
        assert_eq!(values[0].contents, [content(" A", "\u{202e}x\r", false)]);
        let other = [("value", "7"), ("variable", "A"), ("secret", "y")];
        assert_eq!(read(&other).apply_to(&mut values), Some(0));
        assert_eq!(values[0].contents, [content(" A", "y", true)]);
    }

    #[test]
    fn a_value_is_removed_unless_it_is_gone() {
        let mut values = vec![PoolValue { id: "7".into(), contents: Vec::new() }];
        let gone = read(&[("value", "8"), ("remove", "yes")]);
        assert_eq!(gone.apply_to(&mut values), None);
        assert_eq!(read(&[("value", "7"), ("remove", "yes")]).apply_to(&mut values), Some(0));
        assert!(values.is_empty());
    }

    #[test]
    fn contents_entered_for_a_value_that_is_gone_become_a_new_value() {
        let entered = read(&[
            ("version", "1"),
            ("value", "7"),
            ("variable", "USER"),
            ("content", "ada"),
            ("variable", "PIN"),
            ("secret", "********"),
        ]);
        let other = PoolValue { id: "8".into(), contents: Vec::new() };
        assert!(entered.is_gone(&[other]) && !read(&[("value", "")]).is_gone(&[]));
        let renewed = entered.renewed();
        assert_eq!(renewed.contents, [content("USER", "ada", false), content("PIN", "", true)]);
        assert_eq!((renewed.value.as_deref(), renewed.version.base()), (Some(""), None));
    }

    #[test]
    fn a_new_value_has_the_variables_of_the_others_without_their_contents() {
        let value = PoolValue { id: "7".into(), contents: vec![content("PIN", "********", true)] };
        assert_eq!(Entry::like(Some(&value)).contents, [content("PIN", "", true)]);
    }
}
