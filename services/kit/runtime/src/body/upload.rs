//! Calls that upload a body in several messages.

use assay_proto::{
    catalog::{ImportTestCasesRequest, ImportTestCasesTarget},
    execution::{
        AddLaunchLogsRequest, AddReportRequest, AddReportTarget, AddRunAttachmentRequest,
        AddRunAttachmentTarget, AddRunResultsRequest, AddRunResultsTarget, FormFile,
        ReportInstancesRequest, ReportResultsRequest, ReportResultsTarget, UploadArtifactRequest,
        UploadArtifactTarget, UploadResultsRequest, UploadResultsTarget,
    },
};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use tonic::{Status, Streaming};

use super::Piece;

/// A message of a call that uploads a body: a piece of it, and in the first message its target.
pub trait UploadMessage: Send + 'static {
    type Target: Default;

    /// Takes the message apart.
    fn into_parts(self) -> (Option<Self::Target>, Piece);
}

/// Receives the first message of a call that uploads a body. Returns the target of the body, and
/// all of its pieces.
pub async fn open<M: UploadMessage>(
    mut messages: Streaming<M>,
) -> Result<(M::Target, impl Stream<Item = Result<Piece, Status>> + Send), Status> {
    let missing = || Status::invalid_argument("the call has no messages");
    let (target, first) = messages.message().await?.ok_or_else(missing)?.into_parts();
    let rest = messages.map_ok(|message| message.into_parts().1);
    Ok((target.unwrap_or_default(), stream::iter([Ok(first)]).chain(rest)))
}

macro_rules! upload_message {
    ($message:ty, $field:ident: $target:ty, file: $file:expr) => {
        impl UploadMessage for $message {
            type Target = $target;

            fn into_parts(self) -> (Option<$target>, Piece) {
                let file: fn(&mut Self) -> Option<FormFile> = $file;
                let mut message = self;
                let file = file(&mut message);
                (message.$field, Piece { chunk: message.chunk, file, last: message.last })
            }
        }
    };
}

upload_message!(ImportTestCasesRequest, target: ImportTestCasesTarget, file: |_| None);
upload_message!(ReportInstancesRequest, id: String, file: |_| None);
upload_message!(ReportResultsRequest, target: ReportResultsTarget, file: |_| None);
upload_message!(UploadArtifactRequest, target: UploadArtifactTarget, file: |_| None);
upload_message!(AddReportRequest, target: AddReportTarget, file: |m| m.file.take());
upload_message!(AddRunAttachmentRequest, target: AddRunAttachmentTarget, file: |m| m.file.take());
upload_message!(AddRunResultsRequest, target: AddRunResultsTarget, file: |_| None);
upload_message!(UploadResultsRequest, target: UploadResultsTarget, file: |m| m.file.take());

/// The logs name their launch, so the call has no target.
impl UploadMessage for AddLaunchLogsRequest {
    type Target = ();

    fn into_parts(self) -> (Option<()>, Piece) {
        (None, Piece { chunk: self.chunk, file: self.file, last: self.last })
    }
}
