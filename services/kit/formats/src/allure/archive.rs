//! Results in a zip archive.

use std::{
    collections::{BTreeMap, HashMap},
    io::{self, Read, Seek},
};

use assay_proto::Fault;
use memchr::memmem;
use zip::{ZipArchive, result::ZipError};

use super::{Files, MOST_FILES};
use crate::fault::excessive;

/// Name of archives in messages.
const NAME: &str = "a zip archive";

/// Maximum size of all files that are read from an archive, in bytes.
const TOTAL: u64 = 4 << 30;

/// Maximum ratio of the size of a file to its compressed size. Deflate compresses JSON ten to twenty
/// times, and a bomb a thousand times.
const RATIO: u64 = 200;

/// Size of a file from which its ratio counts, in bytes. Small ones may be all zeros.
const SMALL: u64 = 1 << 20;

/// About how much memory an entry of the directory takes, in bytes.
const ENTRY: usize = 500;

/// A zip archive with results, in any folder of it.
pub struct Archive<R> {
    zip: ZipArchive<R>,
    /// Indexes of files by their names without folders.
    indexes: HashMap<String, usize>,
    /// Number of bytes that may still be read.
    left: u64,
}

/// Signature of an entry of the directory (APPNOTE.TXT, 4.3.12).
const SIGNATURE: &[u8] = b"PK\x01\x02";

/// Returns about how much memory the directory of an archive will take, in bytes. Fails if it has too
/// many files.
pub fn directory_size<'p>(parts: impl Iterator<Item = &'p [u8]>) -> Result<usize, Fault> {
    let entries = parts.map(|part| memmem::find_iter(part, SIGNATURE).count()).sum::<usize>();
    if entries > MOST_FILES {
        let problem = format!("it has more than {MOST_FILES} files");
        return Err(excessive(NAME, "in its directory", problem));
    }
    Ok(entries * ENTRY)
}

impl<R: Read + Seek> Archive<R> {
    /// Opens an archive whose [`directory_size`] is known.
    pub fn open(file: R) -> Result<Self, Fault> {
        let zip = ZipArchive::new(file).map_err(|error| broken(&error))?;
        let base = |path: &str| path.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
        // A file whose name is unreadable is none of the results.
        let names = zip.file_names().map(|path| base(&path.unwrap_or_default()));
        let indexes = names.zip(0..).filter(|(name, _)| !name.is_empty()).collect();
        Ok(Self { zip, indexes, left: TOTAL })
    }
}

impl<R: Read + Seek> Files for Archive<R> {
    fn sizes(&mut self) -> BTreeMap<String, u64> {
        let Self { zip, indexes, .. } = self;
        let mut size = |index| zip.by_index_raw(index).map_or(0, |file| file.size());
        indexes.iter().map(|(name, index)| (name.clone(), size(*index))).collect()
    }

    fn open(&mut self, name: &str) -> Result<Box<dyn Read + '_>, Fault> {
        let index = self.indexes.get(name).copied().ok_or(Fault::NotFound("file"))?;
        let file = self.zip.by_index(index).map_err(|error| broken(&error))?;
        let largest = SMALL.max(file.compressed_size().saturating_mul(RATIO));
        Ok(Box::new(Bounded { file, largest, left: &mut self.left }))
    }
}

/// A file that must not be larger than expected.
struct Bounded<'a, F> {
    file: F,
    /// Number of bytes that the file may still have.
    largest: u64,
    /// Number of bytes that may still be read from the archive.
    left: &'a mut u64,
}

impl<F: Read> Read for Bounded<'_, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        let size = read as u64;
        if size > self.largest || size > *self.left {
            return Err(io::Error::other("the archive grows too much when it is decompressed"));
        }
        self.largest -= size;
        *self.left -= size;
        Ok(read)
    }
}

fn broken(error: &ZipError) -> Fault {
    crate::fault::broken(NAME, "in the archive", format_args!("a file is unreadable: {error}"))
}
