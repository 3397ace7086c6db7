//! Rows and messages in parts of limited size, so that the memory for a part does not grow with their
//! number.

use std::{iter, mem::take};

/// Maximum size of the rows that one statement inserts, or of the events that one transaction applies,
/// in bytes, unless one of them is larger.
pub const PART: usize = 256 << 10;

/// Size of a row without its texts, in bytes.
const ROW: usize = 128;

/// Splits rows into parts of at most `most` bytes. A larger row is a part of its own.
pub fn split<T>(rows: Vec<T>, most: usize, size: impl Fn(&T) -> usize) -> Vec<Vec<T>> {
    let (mut parts, mut part, mut total) = (Vec::new(), Vec::new(), 0);
    for row in rows {
        let size = size(&row);
        if total + size > most && !part.is_empty() {
            parts.push(take(&mut part));
            total = 0;
        }
        total += size;
        part.push(row);
    }
    if !part.is_empty() {
        parts.push(part);
    }
    parts
}

/// Returns parts of at most [`PART`] bytes. `texts` is the size of the texts of a row, in bytes.
pub fn bounded<T>(mut rows: &[T], texts: impl Fn(&T) -> usize) -> impl Iterator<Item = &[T]> {
    iter::from_fn(move || {
        let mut total = 0;
        let fits = |row: &&T| {
            total += ROW + texts(row);
            total <= PART
        };
        let count = rows.iter().take_while(fits).count().max(1);
        let (part, rest) = rows.split_at_checked(count)?;
        rows = rest;
        Some(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_split_where_a_part_would_be_too_large() {
        let size = |row: &usize| *row;
        assert_eq!(
            split(vec![3, 4, 5, 20, 1, 1], 10, size),
            [vec![3, 4], vec![5], vec![20], vec![1, 1]]
        );
        assert!(split(Vec::<usize>::new(), 10, size).is_empty());
    }

    #[test]
    fn a_part_has_few_large_rows_or_many_small_ones() {
        let parts =
            |texts: &[usize]| bounded(texts, |row| *row).map(<[usize]>::len).collect::<Vec<_>>();
        assert_eq!(parts(&vec![0; 5000]), [2048, 2048, 904]);
        assert_eq!(parts(&[PART, 0, PART, 0]), [1, 1, 1, 1]);
        assert_eq!(parts(&[100_000, 100_000, 100_000]), [2, 1]);
        assert!(parts(&[]).is_empty());
    }
}
