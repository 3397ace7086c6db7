//! The files of a form, as those of a folder.

use std::{
    collections::{BTreeMap, HashMap},
    io::Read,
};

use assay_formats::allure::Files;
use assay_proto::Fault;
use assay_rpc::body::File;

use super::chunks::Chunks;

/// Files by their names.
pub(super) struct Folder<'f>(HashMap<&'f str, &'f File>);

impl<'f> Folder<'f> {
    /// Names the files as the client did, which for attachments is the path in the report.
    pub(super) fn of(files: &'f [File]) -> Self {
        Self(files.iter().map(|file| (file.name.as_str(), file)).collect())
    }
}

impl Files for Folder<'_> {
    fn sizes(&mut self) -> BTreeMap<String, u64> {
        self.0.iter().map(|(name, file)| ((*name).to_owned(), file.size() as u64)).collect()
    }

    fn open(&mut self, name: &str) -> Result<Box<dyn Read + '_>, Fault> {
        let file = self.0.get(name).ok_or(Fault::NotFound("file"))?;
        Ok(Box::new(Chunks::new(file.parts())))
    }
}
