//! Lines of a body that is received in parts.

use anyhow::{Result, ensure};

/// Maximum length of a line, in bytes: that of an import.
const LONGEST: usize = 64 << 20;

/// The lines of a body, as far as it was received.
#[derive(Default)]
pub(super) struct Lines {
    /// The beginning of the next line.
    rest: Vec<u8>,
}

impl Lines {
    /// Calls `each` with the lines that end in a part of the body.
    pub(super) fn add(
        &mut self,
        mut part: &[u8],
        mut each: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        while let Some(end) = part.iter().position(|byte| *byte == b'\n') {
            let (line, others) = part.split_at(end + 1);
            self.rest.extend_from_slice(line);
            each(&self.rest)?;
            self.rest.clear();
            part = others;
        }
        self.rest.extend_from_slice(part);
        ensure!(self.rest.len() <= LONGEST, "a line has more than {LONGEST} bytes");
        Ok(())
    }

    /// Calls `each` with a last line that has no end.
    pub(super) fn end(self, mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        if self.rest.is_empty() { Ok(()) } else { each(&self.rest) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_across_parts() {
        let (mut lines, mut found) = (Lines::default(), Vec::new());
        let mut keep = |line: &[u8]| {
            found.push(String::from_utf8(line.to_vec())?);
            Ok(())
        };
        for part in ["a\nb", "", "c\n\n", "d"] {
            lines.add(part.as_bytes(), &mut keep).unwrap();
        }
        lines.end(&mut keep).unwrap();
        assert_eq!(found, ["a\n", "bc\n", "\n", "d"]);
    }

    #[test]
    fn a_line_without_an_end_is_refused() {
        let (mut lines, part) = (Lines::default(), vec![b'x'; 1 << 20]);
        let refused = (0..=LONGEST >> 20).find(|_| lines.add(&part, |_| Ok(())).is_err());
        assert_eq!(refused, Some(LONGEST >> 20));
    }
}
