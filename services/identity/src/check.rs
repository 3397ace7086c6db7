//! What clients write, checked. All that is wrong with an input is told at once.

use assay_proto::{Fault, Violation};

/// What a name may have at most, in characters.
const LONGEST_NAME: usize = 255;

/// What any other text may have at most, in bytes.
const LARGEST_TEXT: usize = 64 << 10;

/// What is wrong with an input, as far as it was looked at.
#[derive(Default)]
pub(crate) struct Check(Vec<Violation>);

impl Check {
    pub(crate) fn refuse(&mut self, field: impl Into<String>, problem: impl Into<String>) {
        self.0.push(Violation { field: field.into(), problem: problem.into() });
    }

    /// A name, which is never blank. It stands in mails, on one line.
    pub(crate) fn name(&mut self, field: &str, name: &str) {
        if name.trim().is_empty() {
            self.refuse(field, "must not be blank");
        }
        if name.chars().count() > LONGEST_NAME {
            self.refuse(field, format!("must have at most {LONGEST_NAME} characters"));
        }
        if name.contains(char::is_control) {
            self.refuse(field, "must not contain control characters");
        }
    }

    /// A text that may be absent.
    pub(crate) fn text(&mut self, field: &str, text: Option<&str>) {
        let text = text.unwrap_or_default();
        if text.contains('\0') {
            self.refuse(field, "must not contain NUL characters");
        }
        if text.len() > LARGEST_TEXT {
            self.refuse(field, format!("must have at most {LARGEST_TEXT} bytes"));
        }
    }

    /// What a part of the input was read as; what is wrong with it is kept, with the rest.
    pub(crate) fn read<T>(&mut self, part: Result<T, Fault>) -> Result<Option<T>, Fault> {
        match part {
            Ok(part) => Ok(Some(part)),
            Err(Fault::Invalid(violations)) => {
                self.0.extend(violations);
                Ok(None)
            }
            Err(fault) => Err(fault),
        }
    }

    /// Fails if anything is wrong.
    pub(crate) fn done(self) -> Result<(), Fault> {
        if self.0.is_empty() { Ok(()) } else { Err(Fault::Invalid(self.0)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_wrong_is_told_at_once() {
        let mut check = Check::default();
        for (field, name) in [
            ("fits", "ü".repeat(255)),
            ("blank", " ".into()),
            ("long", "ü".repeat(256)),
            ("lines", "a\r\nBcc: b@example.com".into()),
        ] {
            check.name(field, &name);
        }
        check.text("none", None);
        check.text("nul", Some("a\0"));
        check.text("large", Some(&"x".repeat(LARGEST_TEXT + 1)));
        assert!(check.read(Err::<(), _>(Fault::invalid("read", "is wrong"))).unwrap().is_none());
        assert!(check.read(Err::<(), _>(Fault::Unauthenticated)).is_err());

        let Err(Fault::Invalid(violations)) = check.done() else { panic!("nothing is wrong") };
        let fields: Vec<_> = violations.into_iter().map(|violation| violation.field).collect();
        assert_eq!(fields, ["blank", "long", "lines", "nul", "large", "read"]);
    }
}
