//! The part of a file that a client wants: the whole file, a range of it (RFC 9110, section 14), or nothing.

use std::ops::Range;

use assay_proto::{Fault, catalog::FileRange};
use bytes::Bytes;
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};

use crate::{FileStore, Place};

/// The part of a file that a client wants.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// The whole file by default.
    pub range: Option<FileRange>,
    /// Tag that the file must have for the range to apply: its SHA-256, or the id of an artifact.
    pub if_tag: Option<String>,
    /// Whether to return no contents.
    pub head_only: bool,
}

/// The part of a file that a client gets.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Absent if it is the whole file.
    pub range: Option<FileRange>,
    /// Whether the file has no byte of the wanted range.
    pub is_unsatisfiable: bool,
    contents: Contents,
}

/// The bytes that are read.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Contents {
    Nothing,
    Range(Range<u64>),
    Whole,
}

impl Wanted {
    /// Returns the part of a file with this size in bytes and this tag.
    pub fn part(self, size: i64, tag: &str) -> Part {
        let applies = self.if_tag.is_none_or(|wanted| wanted == tag);
        let range = self.range.filter(|_| applies).map(|range| range.within(size));
        let is_unsatisfiable = range == Some(None);
        let range = range.flatten();
        let contents = match &range {
            _ if self.head_only || size == 0 || is_unsatisfiable => Contents::Nothing,
            Some(range) => Contents::Range(range.start.unsigned_abs()..range.end.unsigned_abs()),
            None => Contents::Whole,
        };
        Part { range: range.as_ref().map(FileRange::of), is_unsatisfiable, contents }
    }
}

impl FileStore {
    /// Returns the chunks of a part of a file.
    pub async fn get_part(
        &self,
        place: Place,
        part: &Part,
    ) -> Result<BoxStream<'static, Result<Bytes, Fault>>, Fault> {
        Ok(match &part.contents {
            Contents::Nothing => stream::empty().boxed(),
            Contents::Range(range) => self.get_range(place, range.clone()).await?.boxed(),
            Contents::Whole => self.get(place).await?.1.boxed(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: i64 = 10;

    fn range(first: i64, last: i64) -> FileRange {
        FileRange { first: Some(first), last: Some(last) }
    }

    fn whole() -> Part {
        Part { range: None, is_unsatisfiable: false, contents: Contents::Whole }
    }

    #[test]
    fn the_whole_file_is_the_default() {
        assert_eq!(Wanted::default().part(SIZE, "tag"), whole());
    }

    #[test]
    fn a_range_ends_with_the_file() {
        let wanted = Wanted { range: Some(range(7, 99)), ..Wanted::default() };
        let expected = Part {
            range: Some(range(7, 9)),
            is_unsatisfiable: false,
            contents: Contents::Range(7..10),
        };
        assert_eq!(wanted.part(SIZE, "tag"), expected);
    }

    #[test]
    fn a_range_beyond_the_file_is_nothing() {
        for size in [0, SIZE] {
            let wanted = Wanted { range: Some(range(10, 19)), ..Wanted::default() };
            let expected =
                Part { range: None, is_unsatisfiable: true, contents: Contents::Nothing };
            assert_eq!(wanted.part(size, "tag"), expected, "{size}");
        }
    }

    #[test]
    fn a_range_of_another_file_is_ignored() {
        for (tag, applies) in [("tag", true), ("other", false), ("", false)] {
            for range in [range(0, 3), range(10, 19)].map(Some) {
                let wanted = Wanted { range, if_tag: Some(tag.to_owned()), head_only: false };
                assert_eq!(wanted.part(SIZE, "tag") != whole(), applies, "{tag:?}");
            }
        }
    }

    #[test]
    fn nothing_is_read_of_an_empty_file_or_for_its_head() {
        for (size, head_only) in [(0, false), (0, true), (SIZE, true)] {
            let wanted = Wanted { head_only, ..Wanted::default() };
            let expected = Part { contents: Contents::Nothing, ..whole() };
            assert_eq!(wanted.part(size, "tag"), expected, "{size}");
        }
    }
}
