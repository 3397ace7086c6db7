//! Places in the list of causes.
//!
//! The numbers of test cases, by which causes are listed, change between two pages: results arrive, failures are
//! muted, and reviews are taken back. A place that is such a number leaves the causes out that pass it. Therefore only
//! the first causes are listed by their numbers, and a place names those that have been listed. The others follow in the
//! order of their fingerprints, which do not change.

use assay_fingerprint::Fingerprint;
use assay_proto::Fault;

use crate::test_report::LEADING_CAUSES as LEADING;

/// Number of digits of a fingerprint that name a leading cause: so many are different for all causes of an execution.
const PREFIX: usize = 16;

/// A place in the list.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Place {
    /// The beginnings of the leading causes that have been listed, one after the other.
    leading: String,
    /// The last cause that was listed after the leading ones.
    last: Option<Fingerprint>,
}

impl Place {
    /// Reads the cursor of a request.
    pub(crate) fn read(cursor: &str) -> Result<Self, Fault> {
        Self::parse(cursor)
            .ok_or_else(|| Fault::invalid("cursor", "must be a cursor from a response"))
    }

    fn parse(cursor: &str) -> Option<Self> {
        let (leading, last) = match cursor.split_once('-') {
            Some((leading, last)) => (leading, Some(last.parse().ok()?)),
            None => (cursor, None),
        };
        let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let is_place = leading.len().is_multiple_of(PREFIX)
            && leading.bytes().all(is_digit)
            && match last {
                Some(_) => leading.len() == LEADING * PREFIX,
                None => (1..=LEADING * PREFIX).contains(&leading.len()),
            };
        is_place.then(|| Self { leading: leading.to_owned(), last })
    }

    /// Goes on to the place after a cause.
    pub(crate) fn pass(&mut self, cause: Fingerprint) {
        if self.following() == 0 {
            self.last = Some(cause);
        } else {
            self.leading.push_str(&cause.to_string()[..PREFIX]);
        }
    }

    /// Returns the cursor of the place.
    pub(crate) fn cursor(&self) -> String {
        match self.last {
            Some(last) => format!("{}-{last}", self.leading),
            None => self.leading.clone(),
        }
    }

    /// Returns the beginnings of the fingerprints of the leading causes that have been listed, in hexadecimal digits.
    pub(crate) fn leading(&self) -> Vec<&str> {
        let count = self.leading.len() / PREFIX;
        (0..count).map(|index| &self.leading[index * PREFIX..][..PREFIX]).collect()
    }

    /// Returns the number of leading causes that follow.
    pub(crate) fn following(&self) -> usize {
        LEADING - self.leading.len() / PREFIX
    }

    /// Returns the fingerprint of the last cause that was listed after the leading ones.
    pub(crate) fn last(&self) -> Option<&[u8]> {
        self.last.as_ref().map(|last| &last.as_bytes()[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause(number: u8) -> Fingerprint {
        Fingerprint::from([number; 16])
    }

    #[test]
    fn a_cursor_names_the_leading_causes_and_the_last_other_one() {
        let mut place = Place::default();
        assert_eq!((place.following(), place.last()), (50, None));
        for number in 1..=60 {
            place.pass(cause(number));
            assert_eq!(Place::read(&place.cursor()).unwrap(), place, "{number}");
            assert_eq!(place.leading().len(), usize::from(number).min(LEADING));
        }
        assert_eq!((place.following(), place.last()), (0, Some(&[60; 16][..])));
        assert_eq!(place.cursor().len(), 50 * 16 + 1 + 32);
    }

    #[test]
    fn other_cursors_are_refused() {
        let last = cause(7);
        let many = "0".repeat(51 * 16);
        let early = format!("{}-{last}", "0".repeat(16));
        for cursor in [
            "",
            "7",
            "-",
            "+000000000000007",
            "A00000000000000f",
            "ä",
            &last.to_string()[..31],
            &many,
            &early,
        ] {
            assert_eq!(Place::parse(cursor), None, "{cursor}");
        }
    }
}
