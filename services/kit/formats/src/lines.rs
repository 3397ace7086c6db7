//! Reads lines of bounded size.

use std::io::{self, BufRead};

use assay_proto::Fault;

use crate::fault::{broken, excessive};

/// Maximum size of a line, in bytes. Cucumber writes an attachment in a line.
const LONGEST: usize = 4 << 20;

/// The lines of a file of the format with this name.
pub(crate) struct Lines<'f, R> {
    format: &'f str,
    file: R,
    line: Vec<u8>,
    /// Number of the current line, from 1.
    number: usize,
}

impl<'f, R: BufRead> Lines<'f, R> {
    pub(crate) fn new(format: &'f str, file: R) -> Self {
        Self { format, file, line: Vec::new(), number: 0 }
    }

    /// Reads the next line, without its end. Returns its number, from 1, too.
    pub(crate) fn next(&mut self) -> Result<Option<(usize, &[u8])>, Fault> {
        self.line.clear();
        self.number += 1;
        loop {
            let available = match self.file.fill_buf() {
                Ok(available) => available,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(broken(self.format, &self.place(), error)),
            };
            let end = available.iter().position(|byte| *byte == b'\n');
            let is_file_end = available.is_empty();
            let part = &available[..end.unwrap_or(available.len())];
            if self.line.len() + part.len() > LONGEST {
                let problem = format!("a line has more than {LONGEST} bytes");
                return Err(excessive(self.format, &self.place(), problem));
            }
            self.line.extend_from_slice(part);
            let consumed = end.map_or(part.len(), |end| end + 1);
            self.file.consume(consumed);
            if end.is_some() || is_file_end {
                if is_file_end && self.line.is_empty() {
                    return Ok(None);
                }
                break;
            }
        }
        if self.line.last() == Some(&b'\r') {
            self.line.pop();
        }
        Ok(Some((self.number, &self.line)))
    }

    fn place(&self) -> String {
        format!("line {}", self.number)
    }
}
