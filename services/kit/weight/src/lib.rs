//! The memory that JSON takes when it is parsed, known before it is parsed.
//!
//! A body of a few mebibytes can become a hundred times as large: `{}` is two bytes, and a record
//! without fields several hundred. So a document has a weight in addition to its size: a fixed amount for
//! each of its values. A service weighs each document before it parses it, refuses one that is too heavy, and
//! acquires memory for the weight of the others.

/// Weight of an object, in bytes: about that of the largest record without texts.
const OBJECT: usize = 384;

/// Weight of another value, and of a member of an object, in bytes.
const VALUE: usize = 48;

/// Maximum weight of the values of a document, in bytes. The 100,000 test cases of the largest test set
/// fit.
pub const HEAVIEST: usize = 48 << 20;

/// Size of the parts in which [`at_most`] counts, in bytes, so that a byte holds each count.
const PART: usize = u8::MAX as usize;

/// Returns a weight that a document has at most, in a tenth of the time that its [`Weight`] takes: texts
/// are not distinguished from what is around them.
pub fn at_most(json: &[u8]) -> usize {
    let of_part = |part: &[u8]| {
        let (mut objects, mut values) = (0_u8, 0_u8);
        for byte in part {
            objects += u8::from(*byte == b'{');
            values += u8::from(*byte == b'[' || *byte == b',');
        }
        OBJECT * usize::from(objects) + VALUE * usize::from(values)
    };
    json.chunks(PART).map(of_part).sum()
}

/// Values of a document, counted part by part.
///
/// The document need not be valid: what stands within quotation marks does not count, and braces,
/// brackets and commas do.
#[derive(Clone, Debug, Default)]
pub struct Weight {
    bytes: usize,
    depth: usize,
    deepest: usize,
    in_text: bool,
    is_escaped: bool,
}

impl Weight {
    /// Returns the weight of a whole document.
    pub fn of(json: &[u8]) -> Self {
        let mut weight = Self::default();
        weight.add(json);
        weight
    }

    /// Adds the next part of the document.
    pub fn add(&mut self, part: &[u8]) {
        for byte in part {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = self.in_text,
                b'"' => self.in_text = !self.in_text,
                _ if self.in_text => {}
                byte => self.add_structure(*byte),
            }
        }
    }

    /// Adds a byte that is not part of a text.
    fn add_structure(&mut self, byte: u8) {
        match byte {
            b'{' | b'[' => {
                self.bytes += if byte == b'{' { OBJECT } else { VALUE };
                self.depth += 1;
                self.deepest = self.deepest.max(self.depth);
            }
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            b',' => self.bytes += VALUE,
            _ => {}
        }
    }

    /// Returns the weight of the values so far, in bytes. Their texts come on top.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the maximum number of arrays and objects around a value.
    pub fn deepest(&self) -> usize {
        self.deepest
    }

    /// Returns whether the values are too many for one document.
    pub fn is_excessive(&self) -> bool {
        self.bytes > HEAVIEST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_weigh_and_their_texts_do_not() {
        for (json, bytes, deepest) in [
            ("", 0, 0),
            ("5", 0, 0),
            ("{}", OBJECT, 1),
            ("[]", VALUE, 1),
            ("[0,0]", 2 * VALUE, 1),
            (r#"[{}, {"a": "{[,", "b\"{": ["\\"]}]"#, 2 * OBJECT + 4 * VALUE, 3),
        ] {
            let weight = Weight::of(json.as_bytes());
            assert_eq!((weight.bytes(), weight.deepest()), (bytes, deepest), "{json}");
            assert!(at_most(json.as_bytes()) >= bytes, "{json}");
            let mut parts = Weight::default();
            json.as_bytes().chunks(1).for_each(|part| parts.add(part));
            assert_eq!(parts.bytes(), bytes, "{json} byte by byte");
        }
    }

    #[test]
    fn a_document_without_marks_in_texts_has_the_weight_that_it_has_at_most() {
        let json = vec![r#"{"Step": [1, {}], "Text": "none"}"#; 1000].join(",");
        assert_eq!(at_most(json.as_bytes()), Weight::of(json.as_bytes()).bytes());
        assert!(at_most(br#""{[,""#) > 0);
    }

    #[test]
    fn the_largest_test_set_fits_and_as_many_empty_records_as_fit_into_its_size_do_not() {
        let set = vec![r#"{"Id":"019cade2-11c0-7c16-bf3e-17fae47e173e"}"#; 100_000].join(",");
        assert!(!Weight::of(set.as_bytes()).is_excessive());
        assert!(Weight::of(vec!["{}"; set.len() / 3].join(",").as_bytes()).is_excessive());
    }
}
