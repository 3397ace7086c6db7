//! The version of the record that a form changes. It stays the one with which the form was opened, also if the form is
//! refused, so that a change of somebody else is only replaced by a user who confirms it.

use maud::{Markup, html};
use serde::Deserialize;

use super::paged::unless_empty;
use crate::text::clean;

/// The fields of a form.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Version {
    /// The version that the user has seen.
    #[serde(deserialize_with = "unless_empty")]
    version: Option<String>,
    /// The later version that the user wants to replace.
    #[serde(deserialize_with = "unless_empty")]
    replaced: Option<String>,
}

impl Version {
    /// Returns the version of a form that is opened.
    pub(super) fn of(present: &str) -> Self {
        Self { version: Some(present.to_owned()), replaced: None }
    }

    /// Reads a field of a form, if it is one of these.
    pub(super) fn read(&mut self, field: &str, text: &str) {
        let text = Some(text).filter(|text| !text.is_empty()).map(str::to_owned);
        match field {
            "version" => self.version = text,
            "replaced" => self.replaced = text,
            _ => {}
        }
    }

    /// Returns the version on which the change is based, unless the form has none.
    pub(super) fn base(&self) -> Option<&str> {
        self.replaced.as_deref().or(self.version.as_deref())
    }

    /// Returns whether somebody else has changed the record since.
    pub(super) fn is_stale(&self, present: &str) -> bool {
        self.base().is_some_and(|base| base != present)
    }

    /// The fields of a form whose record, called `noun`, has this version now.
    pub(super) fn fields(&self, present: &str, noun: &str) -> Markup {
        html! {
            input type="hidden" name="version" value=(clean(self.base().unwrap_or(present)));
            @if self.is_stale(present) {
                p.alert role="alert" {
                    "Somebody else has changed this " (noun) " since this page was shown. Nothing of your change is \
                     saved yet."
                }
                label.check {
                    input type="checkbox" name="replaced" value=(clean(present));
                    " Replace the change of somebody else"
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entered(fields: &[(&str, &str)]) -> Version {
        let mut version = Version::default();
        for (field, text) in fields {
            version.read(field, text);
        }
        version
    }

    #[test]
    fn a_form_keeps_the_version_with_which_it_was_opened() {
        let form = entered(&[("version", "1"), ("name", "2"), ("replaced", "")]);
        assert_eq!((form.base(), form.is_stale("1"), form.is_stale("3")), (Some("1"), false, true));
        let shown = form.fields("3", "pool").into_string();
        assert!(shown.contains("name=\"version\" value=\"1\""), "{shown}");
        assert!(shown.contains("name=\"replaced\" value=\"3\">"), "it is not checked: {shown}");
        assert!(!form.fields("1", "pool").into_string().contains("replaced"));
    }

    #[test]
    fn a_user_who_confirms_replaces_the_version_that_was_shown_and_no_later_one() {
        let confirmed = entered(&[("version", "1"), ("replaced", "3")]);
        assert_eq!((confirmed.base(), confirmed.is_stale("3")), (Some("3"), false));
        let shown = confirmed.fields("4", "pool").into_string();
        assert!(shown.contains("name=\"version\" value=\"3\""), "{shown}");
        assert!(shown.contains("name=\"replaced\" value=\"4\">"), "{shown}");
    }

    #[test]
    fn a_form_without_a_version_gets_the_present_one() {
        let form = entered(&[]);
        assert!(form.base().is_none() && !form.is_stale("3"));
        let shown = form.fields("3", "pool").into_string();
        assert!(shown.contains("name=\"version\" value=\"3\""), "{shown}");
    }
}
