//! What clients write, checked. All that is wrong with an input is told at once.

use assay_proto::{Fault, Violation};
use serde::Serialize;
use serde_json::Value;

/// What a name may have at most, in characters.
const LONGEST_NAME: usize = 255;

/// What any other text may have at most, in bytes.
const LARGEST_TEXT: usize = 64 << 10;

/// How many problems a client is told of at once; an answer that tells more may be too large.
pub const MOST_PROBLEMS: usize = 100;

/// What is wrong with an input, as far as it was looked at.
#[derive(Default)]
pub struct Check(Vec<Violation>);

impl Check {
    pub fn refuse(&mut self, field: impl Into<String>, problem: impl Into<String>) {
        if self.0.len() < MOST_PROBLEMS {
            self.0.push(Violation { field: field.into(), problem: problem.into() });
        }
    }

    /// What holds for every text of an input, wherever in it.
    pub fn texts(&mut self, input: &impl Serialize) {
        match serde_json::to_value(input) {
            Ok(value) => self.value("", &value),
            // An enum with a number that no contract knows.
            Err(error) => self.refuse("", error.to_string()),
        }
    }

    fn value(&mut self, pointer: &str, value: &Value) {
        match value {
            Value::String(text) => self.text(pointer, text),
            Value::Array(values) => {
                for (place, value) in values.iter().enumerate() {
                    self.value(&below(pointer, &place.to_string()), value);
                }
            }
            Value::Object(fields) => {
                for (name, value) in fields {
                    self.value(&below(pointer, name), value);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// What holds for every text.
    pub fn text(&mut self, pointer: &str, text: &str) {
        if text.contains('\0') {
            self.refuse(pointer, "must not contain NUL characters");
        }
        if text.len() > LARGEST_TEXT {
            self.refuse(pointer, format!("must have at most {LARGEST_TEXT} bytes"));
        }
    }

    /// A name, which is never blank.
    pub fn name(&mut self, field: &str, name: &str) {
        if name.trim().is_empty() {
            self.refuse(field, "must not be blank");
        }
        if name.chars().count() > LONGEST_NAME {
            self.refuse(field, format!("must have at most {LONGEST_NAME} characters"));
        }
    }

    /// A name that stands where a line break would mean something, such as in a mail.
    pub fn name_on_one_line(&mut self, field: &str, name: &str) {
        self.name(field, name);
        if name.contains(char::is_control) {
            self.refuse(field, "must not contain control characters");
        }
    }

    /// A number that measures something.
    pub fn amount(&mut self, field: &str, number: f64) {
        if !number.is_finite() || number < 0.0 {
            self.refuse(field, "must be a number from 0");
        }
    }

    /// A size in bytes.
    pub fn size(&mut self, field: &str, size: i64) {
        if size < 0 {
            self.refuse(field, "must be a number from 0");
        }
    }

    /// What a part of the input was read as; what is wrong with it is kept, with the rest.
    pub fn read<T>(&mut self, part: Result<T, Fault>) -> Result<Option<T>, Fault> {
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
    pub fn done(self) -> Result<(), Fault> {
        if self.0.is_empty() { Ok(()) } else { Err(Fault::Invalid(self.0)) }
    }
}

/// The JSON pointer (RFC 6901), without its leading slash, to what has that name at `pointer`.
pub fn below(pointer: &str, name: &str) -> String {
    let name = name.replace('~', "~0").replace('/', "~1");
    if pointer.is_empty() { name } else { format!("{pointer}/{name}") }
}

#[cfg(test)]
mod tests {
    use assay_proto::{VariableInput, catalog::SubjectInput};

    use super::*;

    fn fields(check: Check) -> Vec<String> {
        check.0.into_iter().map(|violation| violation.field).collect()
    }

    #[test]
    fn no_text_of_an_input_is_forgotten() {
        let variable = VariableInput { content: "a\0".into(), ..VariableInput::default() };
        let mut check = Check::default();
        check.texts(&SubjectInput {
            subject_type: 1,
            name: "x".repeat(LARGEST_TEXT + 1),
            framework_file_id: Some("\0".into()),
            variables: vec![VariableInput::default(), variable],
            ..SubjectInput::default()
        });
        let mut fields = fields(check);
        fields.sort();
        assert_eq!(fields, ["FrameworkFileId", "Name", "Variables/1/Content"]);
    }

    #[test]
    fn names_and_numbers_have_limits() {
        let mut check = Check::default();
        for (field, name) in
            [("fits", "ü".repeat(255)), ("blank", " ".into()), ("long", "ü".repeat(256))]
        {
            check.name(field, &name);
        }
        for (field, number) in
            [("zero", 0.0), ("nan", f64::NAN), ("inf", f64::INFINITY), ("below", -1.0)]
        {
            check.amount(field, number);
        }
        check.size("size", -1);
        assert_eq!(fields(check), ["blank", "long", "nan", "inf", "below", "size"]);
    }

    #[test]
    fn what_cannot_be_read_is_told_with_the_rest() {
        let mut check = Check::default();
        check.name_on_one_line("lines", "a\r\nBcc: b@example.com");
        assert!(check.read(Err::<(), _>(Fault::invalid("read", "is wrong"))).unwrap().is_none());
        assert!(check.read(Err::<(), _>(Fault::Unauthenticated)).is_err());
        assert_eq!(fields(check), ["lines", "read"]);
    }

    #[test]
    fn pointers_are_escaped() {
        assert_eq!(below("TestCases", "a/b~c"), "TestCases/a~1b~0c");
    }
}
