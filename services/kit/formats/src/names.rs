//! Names of bounded size. Different names stay different when they are cut.

use crate::{
    limits::MESSAGE,
    texts::{beginning, storable},
};

/// Maximum length of an identifier or name in the catalog, in characters.
const LONGEST: usize = 255;

/// Number of characters of the mark that a cut name ends with: `~` and the digits of a hash.
const MARK: usize = 17;

/// A 64-bit FNV-1a hash, which is the same in every version of this program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hash(u64);

impl Default for Hash {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hash {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        let step =
            |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        self.0 = bytes.iter().fold(self.0, step);
    }

    fn of(text: &str) -> Self {
        let mut hash = Self::default();
        hash.add(text.as_bytes());
        hash
    }

    pub(crate) fn value(self) -> u64 {
        self.0
    }

    /// Returns what stands for the part of a text that was cut off.
    pub(crate) fn mark(self) -> String {
        format!("~{:016x}", self.0)
    }
}

/// Returns a name of bounded size, as readers keep it.
pub(crate) fn named(text: &str) -> String {
    let text = text.trim();
    if text.len() <= MESSAGE {
        return storable(text);
    }
    beginning(text, MESSAGE - MARK) + &Hash::of(text).mark()
}

/// Returns a name that is short enough for the catalog. A longer one becomes its beginning, `~` and
/// a hash of the whole.
pub(crate) fn shortened(name: &str) -> String {
    let Some((end, _)) = name.char_indices().nth(LONGEST) else { return name.to_owned() };
    let cut = name[..end].char_indices().nth_back(MARK - 1).map_or(end, |(cut, _)| cut);
    name[..cut].to_owned() + &Hash::of(name).mark()
}

/// Returns the path of a file. Of an absolute one, which other machines do not have, only the name.
pub(crate) fn file_name(path: &str) -> String {
    let is_absolute = path.starts_with(['/', '\\']) || path.get(1..2) == Some(":");
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    named(if is_absolute { name } else { path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_shortened_and_stay_different() {
        let long = |end: &str| format!("{}{end}", "ä".repeat(300));
        assert_eq!(shortened(&long("a")).chars().count(), LONGEST);
        assert_ne!(shortened(&long("a")), shortened(&long("b")));
        let longest = "ä".repeat(LONGEST);
        assert_eq!(shortened(&longest), longest);

        let longer = |end: &str| named(&format!("{}{end}", "x".repeat(MESSAGE)));
        assert_eq!(longer("a").len(), MESSAGE);
        assert_ne!(shortened(&longer("a")), shortened(&longer("b")));
    }
}
