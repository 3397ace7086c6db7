//! Uploads of a user.

use assay_proto::catalog::{
    Project, StoredFile, UploadFileHead, UploadFileRequest, UploadFileTarget,
};

use super::User;
use crate::world::Answer;

impl User {
    /// Uploads a file in these messages.
    pub(crate) async fn send_file(&self, messages: Vec<UploadFileRequest>) -> Answer<StoredFile> {
        let request = self.call(futures::stream::iter(messages));
        let mut stored = self.files().upload_file(request).await?.into_inner();
        Ok(stored.message().await?.expect("the stored file"))
    }

    /// Uploads a file with these contents.
    pub(crate) async fn upload(
        &self,
        project: &Project,
        name: &str,
        contents: &[u8],
    ) -> Answer<StoredFile> {
        self.send_file(messages(project, name, contents)).await
    }
}

/// The messages of an upload, in chunks of 1 MiB.
pub(crate) fn messages(project: &Project, name: &str, contents: &[u8]) -> Vec<UploadFileRequest> {
    let head = UploadFileHead { name: name.to_owned(), ..UploadFileHead::default() };
    let target = UploadFileTarget { project_id: project.id.clone(), size: None };
    let first = UploadFileRequest {
        target: Some(target),
        head: Some(head),
        ..UploadFileRequest::default()
    };
    let chunks = contents.chunks(1 << 20).map(|chunk| UploadFileRequest {
        chunk: chunk.to_vec().into(),
        ..UploadFileRequest::default()
    });
    let last = UploadFileRequest { last: true, ..UploadFileRequest::default() };
    std::iter::once(first).chain(chunks).chain([last]).collect()
}
