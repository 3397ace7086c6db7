//! Attachments of reports, which become artifacts of their execution.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    io::Read,
};

use assay_formats::{Attachment, Content, allure::Files};
use assay_proto::Fault;
use assay_rpc::body::Memory;
use aws_lc_rs::digest;
use bytes::Bytes;

use crate::artifact::{rules::is_name, staged::NewFile};

/// Maximum size of all attachments of an upload, in bytes. Others are left out.
const TOTAL: usize = 32 << 20;

/// Maximum number of attachments of an upload: each is stored by a call of its own.
const MOST_FILES: usize = 1000;

/// Maximum length of the part of a name that the tool has chosen, in bytes.
const LONGEST: usize = 100;

/// The attachments that results refer to.
#[derive(Default)]
pub(super) struct Attachments {
    /// The digest of the upload: files of different uploads can have the same path.
    upload: Vec<u8>,
    /// The sizes of the files that a report can refer to, by their paths.
    offered: BTreeMap<String, u64>,
    /// Those that it refers to, by their paths.
    expected: HashMap<String, NewFile>,
    files: Vec<NewFile>,
    names: HashSet<String>,
    size: usize,
}

impl Attachments {
    pub(super) fn of_upload(digest: &[u8]) -> Self {
        Self { upload: digest.to_vec(), ..Self::default() }
    }

    /// Offers the files of a folder to the report that is read next.
    pub(super) fn offer(&mut self, folder: &mut dyn Files) {
        self.offered = folder.sizes();
    }

    /// Returns the names under which results refer to attachments. Those that were not sent, and
    /// those beyond the limits, are left out.
    pub(super) fn names(&mut self, attachments: &[Attachment]) -> Vec<String> {
        attachments.iter().filter_map(|one| self.name(one)).collect()
    }

    fn name(&mut self, attachment: &Attachment) -> Option<String> {
        match &attachment.content {
            Content::Inline(contents) => {
                let name = name_of(&attachment.name, contents);
                if self.is_new(&name, contents.len())? {
                    let file = new_file(&name, &attachment.media_type, contents.clone().into());
                    self.files.push(file);
                }
                Some(name)
            }
            Content::Path(path) => {
                let size = usize::try_from(*self.offered.get(path)?).ok()?;
                let name = name_of(path, &[&self.upload[..], path.as_bytes()].concat());
                if self.is_new(&name, size)? {
                    let guess = || mime_guess::from_path(path).first_raw().unwrap_or_default();
                    let media_type = match attachment.media_type.as_str() {
                        "" => guess(),
                        media_type => media_type,
                    };
                    let file = new_file(&name, media_type, Bytes::new());
                    self.expected.insert(path.clone(), file);
                }
                Some(name)
            }
            // A client could have written any text there.
            Content::Artifact(name) => is_name(name).then(|| name.clone()),
            Content::Dropped => None,
        }
    }

    /// Returns whether a file is there for the first time, or nothing if it does not fit.
    fn is_new(&mut self, name: &str, size: usize) -> Option<bool> {
        if self.names.contains(name) {
            return Some(false);
        }
        if self.names.len() >= MOST_FILES || self.size.saturating_add(size) > TOTAL {
            return None;
        }
        self.size += size;
        Some(self.names.insert(name.to_owned()))
    }

    /// Reads the files of the folder that the report refers to, in memory that is acquired before.
    pub(super) fn read(
        &mut self,
        folder: &mut dyn Files,
        memory: &mut Memory,
    ) -> Result<(), Fault> {
        for (path, mut file) in self.expected.drain() {
            let size = usize::try_from(self.offered[&path]).unwrap_or(usize::MAX);
            memory.grow(size)?;
            let mut contents = Vec::with_capacity(size);
            let read = folder.open(&path)?.take(size as u64).read_to_end(&mut contents);
            read.map_err(|error| Fault::Malformed(format!("{path} is unreadable: {error}")))?;
            file.contents = contents.into();
            self.files.push(file);
        }
        Ok(())
    }

    pub(super) fn into_files(self) -> Vec<NewFile> {
        self.files
    }
}

/// Returns a file with a media type that is safe in a header.
fn new_file(name: &str, media_type: &str, contents: Bytes) -> NewFile {
    let content_type = safe_content_type(media_type).to_owned();
    NewFile { name: name.to_owned(), content_type, contents }
}

/// Returns a media type if it is safe in a header.
pub(crate) fn safe_content_type(media_type: &str) -> &str {
    let is_valid = media_type.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if is_valid && media_type.len() <= LONGEST { media_type } else { "" }
}

/// Returns a name of an artifact that is the same for the same contents, and shows that of the tool.
pub(crate) fn name_of(name: &str, contents: &[u8]) -> String {
    let digest = digest::digest(&digest::SHA256, contents);
    let start = digest.as_ref().iter().take(6).fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
    let base = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let base: String = base.chars().map(|c| if fits(c) { c } else { '_' }).take(LONGEST).collect();
    format!("{start:012x}-{base}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inline(name: &str, contents: &[u8]) -> Attachment {
        Attachment {
            name: name.to_owned(),
            media_type: "image/png".to_owned(),
            content: Content::Inline(contents.to_vec()),
        }
    }

    #[test]
    fn attachments_have_valid_names_that_differ_by_contents() {
        let mut attachments = Attachments::default();
        let names = attachments.names(&[
            inline("a b/schön.png", b"1"),
            inline("a b/schön.png", b"2"),
            inline("x", b"1"),
        ]);
        assert!(names.iter().all(|name| is_name(name)), "{names:?}");
        assert!(names[0].ends_with("-sch_n.png"), "{names:?}");
        assert_ne!(names[0], names[1]);
        assert_eq!(attachments.into_files().len(), 3);
    }

    #[test]
    fn attachments_beyond_the_limit_are_left_out() {
        let mut attachments = Attachments::default();
        let large = vec![0; TOTAL - 1];
        assert_eq!(attachments.names(&[inline("large", &large)]).len(), 1);
        assert_eq!(attachments.names(&[inline("more", b"22")]).len(), 0);
        assert_eq!(attachments.names(&[inline("less", b"1")]).len(), 1);
    }
}
