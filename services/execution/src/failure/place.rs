//! Places in the list of causes.
//!
//! The numbers of test cases, by which causes are listed, change between two pages: results arrive, failures are
//! muted, and reviews are taken back. A place that is such a number leaves the causes out that pass it. Therefore only
//! the first causes are listed by their numbers, and a place names those that have been listed. The others follow in the
//! order of their fingerprints, which do not change.

use assay_fingerprint::Fingerprint;
use assay_proto::Fault;

use crate::test_report::LEADING_CAUSES as LEADING;

/// Number of bytes of a fingerprint that name a leading cause: so many are different for all causes of an execution.
const PREFIX: usize = 8;

/// A place in the list: the leading causes that have been listed, and the last one of the others.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Place {
    leading: Vec<[u8; PREFIX]>,
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
        if !leading.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let prefixes = leading.as_bytes().chunks(2 * PREFIX).map(|digits| {
            let digits = str::from_utf8(digits).ok().filter(|digits| digits.len() == 2 * PREFIX)?;
            Some(u64::from_str_radix(digits, 16).ok()?.to_be_bytes())
        });
        let leading = prefixes.collect::<Option<Vec<_>>>()?;
        let is_place = match last {
            Some(_) => leading.len() == LEADING,
            None => (1..=LEADING).contains(&leading.len()),
        };
        is_place.then_some(Self { leading, last })
    }

    /// Goes on to the place after a cause.
    pub(crate) fn pass(&mut self, cause: Fingerprint) {
        if self.leading.len() == LEADING {
            self.last = Some(cause);
        } else if let Some(prefix) = cause.as_bytes().first_chunk() {
            self.leading.push(*prefix);
        }
    }

    /// Returns the cursor of the place.
    pub(crate) fn cursor(&self) -> String {
        let prefixes =
            self.leading.iter().map(|prefix| format!("{:016x}", u64::from_be_bytes(*prefix)));
        let last = self.last.map(|last| format!("-{last}"));
        prefixes.chain(last).collect()
    }

    /// Returns the beginnings of the fingerprints of the leading causes that have been listed.
    pub(crate) fn leading(&self) -> Vec<&[u8]> {
        self.leading.iter().map(|prefix| &prefix[..]).collect()
    }

    /// Returns the number of leading causes that follow.
    pub(crate) fn following(&self) -> i64 {
        i64::try_from(LEADING - self.leading.len()).unwrap_or_default()
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
        for cursor in
            ["", "7", "-", "+000000000000007", "ä", &last.to_string()[..31], &many, &early]
        {
            assert_eq!(Place::parse(cursor), None, "{cursor}");
        }
    }
}
