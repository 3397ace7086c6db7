//! Attachments of reports, which become artifacts of their execution.

use std::{
    collections::{HashMap, HashSet},
    io::{Read, Seek},
};

use assay_formats::{
    Attachment, Content,
    allure::{Archive, Files},
};
use assay_proto::Fault;
use assay_runtime::body::Memory;
use aws_lc_rs::digest;

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
    files: Vec<NewFile>,
    names: HashSet<String>,
    /// The files of an archive that are still to be read: the names and the media types of the
    /// artifacts, by the names of the files.
    expected: HashMap<String, (String, String)>,
    size: usize,
}

impl Attachments {
    /// Returns the names under which results refer to attachments. `is_archived` says whether paths
    /// are those of files in an archive, which [`Attachments::read`] reads later; other paths are on
    /// the machine that ran the tests.
    pub(super) fn names(&mut self, attachments: &[Attachment], is_archived: bool) -> Vec<String> {
        attachments.iter().filter_map(|one| self.name(one, is_archived)).collect()
    }

    fn name(&mut self, attachment: &Attachment, is_archived: bool) -> Option<String> {
        match &attachment.content {
            Content::Inline(contents) => {
                let name = name_of(&attachment.name, contents);
                self.add(name.clone(), &attachment.media_type, contents.clone()).then_some(name)
            }
            Content::Path(path) if is_archived && !path.is_empty() => {
                if self.expected.len() + self.files.len() >= MOST_FILES {
                    return None;
                }
                let name =
                    if is_name(path) { path.clone() } else { name_of(path, path.as_bytes()) };
                let file = (name.clone(), attachment.media_type.clone());
                self.expected.insert(path.clone(), file);
                Some(name)
            }
            Content::Path(_) | Content::Dropped => None,
        }
    }

    /// Adds a file unless there are too many. Returns whether it is there.
    fn add(&mut self, name: String, media_type: &str, contents: Vec<u8>) -> bool {
        if self.names.contains(&name) {
            return true;
        }
        if self.files.len() >= MOST_FILES || self.size + contents.len() > TOTAL {
            return false;
        }
        self.size += contents.len();
        self.names.insert(name.clone());
        let is_valid = media_type.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        let content_type = if is_valid && media_type.len() <= LONGEST { media_type } else { "" };
        let (content_type, contents) = (content_type.to_owned(), contents.into());
        self.files.push(NewFile { name, content_type, contents });
        true
    }

    /// Reads the files of an archive that results refer to, in memory that is acquired before. Those
    /// that it does not have, and too large ones, are left out.
    pub(super) fn read<R: Read + Seek>(
        &mut self,
        archive: &mut Archive<R>,
        memory: &mut Memory,
    ) -> Result<(), Fault> {
        for (path, (name, media_type)) in std::mem::take(&mut self.expected) {
            let fits = |size: &usize| *size <= TOTAL - self.size;
            let size = archive.size(&path).and_then(|size| usize::try_from(size).ok());
            let Some(size) = size.filter(fits) else { continue };
            memory.grow(size)?;
            let mut contents = Vec::with_capacity(size);
            let file = archive.open(&path)?.take(size as u64).read_to_end(&mut contents);
            file.map_err(|error| Fault::Malformed(format!("{path} is unreadable: {error}")))?;
            self.add(name, &media_type, contents);
        }
        Ok(())
    }

    pub(super) fn into_files(self) -> Vec<NewFile> {
        self.files
    }
}

/// Returns a name of an artifact that is the same for the same contents, and shows that of the tool.
fn name_of(name: &str, contents: &[u8]) -> String {
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
        let names = attachments.names(
            &[inline("a b/schön.png", b"1"), inline("a b/schön.png", b"2"), inline("x", b"1")],
            false,
        );
        assert!(names.iter().all(|name| is_name(name)), "{names:?}");
        assert!(names[0].ends_with("-sch_n.png"), "{names:?}");
        assert_ne!(names[0], names[1]);
        assert_eq!(attachments.into_files().len(), 3);
    }

    #[test]
    fn attachments_beyond_the_limit_are_left_out() {
        let mut attachments = Attachments::default();
        let large = vec![0; TOTAL - 1];
        assert_eq!(attachments.names(&[inline("large", &large)], false).len(), 1);
        assert_eq!(attachments.names(&[inline("more", b"22")], false).len(), 0);
        assert_eq!(attachments.names(&[inline("less", b"1")], false).len(), 1);
    }
}
