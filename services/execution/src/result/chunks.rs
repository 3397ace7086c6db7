//! A file in parts, with random access.

use std::io::{self, Read, Seek, SeekFrom};

/// The parts of a file, one after the other.
pub(super) struct Chunks<'c> {
    parts: Vec<&'c [u8]>,
    /// The offset of each part.
    offsets: Vec<u64>,
    size: u64,
    position: u64,
}

impl<'c> Chunks<'c> {
    pub(super) fn new(parts: impl Iterator<Item = &'c [u8]>) -> Self {
        let parts: Vec<_> = parts.filter(|part| !part.is_empty()).collect();
        let (mut offsets, mut size) = (Vec::with_capacity(parts.len()), 0);
        for part in &parts {
            offsets.push(size);
            size += part.len() as u64;
        }
        Self { parts, offsets, size, position: 0 }
    }

    /// Whether the file starts with these bytes.
    pub(super) fn starts_with(&self, bytes: &[u8]) -> bool {
        let start = self.parts.iter().copied().flatten().take(bytes.len());
        self.size >= bytes.len() as u64 && start.eq(bytes)
    }
}

impl Read for Chunks<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.position >= self.size {
            return Ok(0);
        }
        let index = self.offsets.partition_point(|offset| *offset <= self.position) - 1;
        let within = usize::try_from(self.position - self.offsets[index]).unwrap_or(usize::MAX);
        let read = (&self.parts[index][within..]).read(buffer)?;
        self.position += read as u64;
        Ok(read)
    }
}

impl Seek for Chunks<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::End(offset) => self.size.checked_add_signed(offset),
            SeekFrom::Current(offset) => self.position.checked_add_signed(offset),
        };
        self.position = position.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_in_parts_is_read_like_a_whole_one() {
        let parts: [&[u8]; 4] = [b"ab", b"", b"cde", b"f"];
        let mut chunks = Chunks::new(parts.into_iter());
        let mut text = String::new();
        chunks.read_to_string(&mut text).unwrap();
        assert_eq!(text, "abcdef");
        assert!(chunks.starts_with(b"abc") && !chunks.starts_with(b"abd"));
        assert!(!chunks.starts_with(b"abcdefg"));

        for (to, rest) in [
            (SeekFrom::Start(3), "def"),
            (SeekFrom::End(-2), "ef"),
            (SeekFrom::Current(-4), "cdef"),
            (SeekFrom::Start(9), ""),
        ] {
            chunks.seek(to).unwrap();
            let mut text = String::new();
            chunks.read_to_string(&mut text).unwrap();
            assert_eq!(text, rest, "{to:?}");
            chunks.seek(SeekFrom::Start(6)).unwrap();
        }
        assert!(chunks.seek(SeekFrom::Current(-7)).is_err());
    }
}
