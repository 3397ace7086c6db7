//! Files that are changed while they are read.

use std::io::{self, BufRead, Read};

/// Maximum size of the input that is changed at once, in bytes.
pub(crate) const INPUT: usize = 16 << 10;

/// Changes a file part by part. The output of a part has about its size.
pub(crate) trait Filter {
    /// Adds a part of the file to the output.
    fn extend(&mut self, input: &[u8]) -> io::Result<()>;

    /// Adds what follows the end of the file to the output.
    fn end(&mut self);

    /// Returns the output since it was cleared.
    fn output(&self) -> &[u8];

    fn clear(&mut self);
}

/// A file as a filter changes it.
pub(crate) struct Filtered<R, F> {
    source: R,
    filter: F,
    consumed: usize,
}

impl<R, F> Filtered<R, F> {
    pub(crate) fn by(filter: F, source: R) -> Self {
        Self { source, filter, consumed: 0 }
    }

    pub(crate) fn filter(&self) -> &F {
        &self.filter
    }
}

impl<R: BufRead, F: Filter> BufRead for Filtered<R, F> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.consumed == self.filter.output().len() {
            self.filter.clear();
            self.consumed = 0;
            let available = self.source.fill_buf()?;
            let available = &available[..available.len().min(INPUT)];
            if available.is_empty() {
                self.filter.end();
                break;
            }
            self.filter.extend(available)?;
            let read = available.len();
            self.source.consume(read);
        }
        Ok(&self.filter.output()[self.consumed..])
    }

    fn consume(&mut self, amount: usize) {
        self.consumed += amount;
    }
}

impl<R: BufRead, F: Filter> Read for Filtered<R, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}
