//! Ranges of the bytes of files.

use std::ops::Range;

use crate::catalog::FileRange;

impl FileRange {
    /// Returns the range of these bytes, of which there is one at least.
    pub fn of(bytes: &Range<i64>) -> Self {
        Self { first: Some(bytes.start), last: Some(bytes.end - 1) }
    }

    /// Returns the bytes of a file of this size that are in the range; none if there are none.
    pub fn within(&self, size: i64) -> Option<Range<i64>> {
        let range = match (self.first, self.last) {
            (Some(first), Some(last)) => first..last.saturating_add(1).min(size),
            (Some(first), None) => first..size,
            (None, Some(count)) => (size - count).max(0)..size,
            (None, None) => 0..size,
        };
        Some(range).filter(|range| range.start >= 0 && !range.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_at_the_end_of_the_file() {
        let range = |first, last| FileRange { first, last }.within(10);
        assert_eq!(range(Some(0), Some(0)), Some(0..1));
        assert_eq!(range(Some(2), Some(99)), Some(2..10));
        assert_eq!(range(Some(9), None), Some(9..10));
        assert_eq!(range(None, Some(3)), Some(7..10));
        assert_eq!(range(None, Some(i64::MAX)), Some(0..10));
        assert_eq!(range(Some(0), Some(i64::MAX)), Some(0..10));
        for (first, last) in
            [(Some(10), None), (Some(10), Some(20)), (None, Some(0)), (Some(5), Some(4))]
        {
            assert_eq!(range(first, last), None, "{first:?} {last:?}");
        }
        assert_eq!(FileRange { first: Some(0), last: None }.within(0), None, "an empty file");
    }
}
