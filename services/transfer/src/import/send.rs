//! Bodies with many records, in requests of limited size.

use std::{fs::File, io::BufReader};

use anyhow::Result;

use crate::folder::next_line;

/// Maximum number of lines, and about how many bytes of them, in a request.
const LINES: usize = 5000;
const BYTES: usize = 8 << 20;

/// Consecutive lines of a file.
pub(super) struct Batch {
    pub(super) body: Vec<u8>,
    /// The numbers of the first and the last line.
    pub(super) lines: (u64, u64),
}

/// Divides lines into batches.
#[derive(Default)]
pub(super) struct Batches {
    body: Vec<u8>,
    first: u64,
    last: u64,
    count: usize,
}

impl Batches {
    /// Adds a line. Returns the batch before it, if the line does not fit into it.
    pub(super) fn add(&mut self, number: u64, line: &[u8]) -> Option<Batch> {
        let is_full = self.count == LINES || self.body.len() + line.len() > BYTES;
        let full = if is_full && self.count > 0 { self.take() } else { None };
        if self.count == 0 {
            self.first = number;
        }
        self.body.extend_from_slice(line);
        if !line.ends_with(b"\n") {
            self.body.push(b'\n');
        }
        self.last = number;
        self.count += 1;
        full
    }

    /// Returns the lines since the last batch.
    pub(super) fn take(&mut self) -> Option<Batch> {
        let count = std::mem::take(&mut self.count);
        let body = std::mem::take(&mut self.body);
        (count > 0).then_some(Batch { body, lines: (self.first, self.last) })
    }
}

/// Returns the lines of a file in batches. `change` may replace a line.
pub(super) fn batches(
    file: File,
    change: impl Fn(Vec<u8>) -> Result<Vec<u8>>,
) -> impl Iterator<Item = Result<Batch>> {
    let (mut file, mut number) = (BufReader::new(file), 0);
    let (mut batches, mut is_done) = (Batches::default(), false);
    std::iter::from_fn(move || {
        while !is_done {
            number += 1;
            match next_line(&mut file) {
                Ok(None) => is_done = true,
                Ok(Some(line)) => match change(line) {
                    Ok(line) => {
                        if let Some(batch) = batches.add(number, &line) {
                            return Some(Ok(batch));
                        }
                    }
                    Err(error) => return Some(Err(error)),
                },
                Err(error) => return Some(Err(error)),
            }
        }
        batches.take().map(Ok)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_have_limited_numbers_of_lines_and_bytes() {
        let mut batches = Batches::default();
        let mut sizes = Vec::new();
        for number in 1..=10_001 {
            sizes.extend(batches.add(number, b"{}\n").map(|batch| batch.lines));
        }
        sizes.extend(batches.add(10_002, &vec![b' '; BYTES]).map(|batch| batch.lines));
        sizes.extend(batches.take().map(|batch| batch.lines));
        assert!(batches.take().is_none());
        assert_eq!(sizes, [(1, 5000), (5001, 10_000), (10_001, 10_001), (10_002, 10_002)]);
    }
}
