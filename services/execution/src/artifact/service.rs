//! Artifacts as other programs see them.

use assay_auth::Caller;
use assay_proto::{
    ArtifactId, CustomerId, ExecutionId, Fault, ProjectId,
    execution::{
        Artifact, ArtifactBatch, DownloadArtifactRequest, UploadArtifactRequest,
        artifact_service_server,
    },
};
use assay_runtime::list::Batches;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use tonic::{Request, Response, Status, Streaming};

use super::{Artifacts, Pieces, Purpose, link::forbidden, rules, store};
use crate::execution;

#[tonic::async_trait]
impl artifact_service_server::ArtifactService for Artifacts {
    type DownloadArtifactStream = Batches<ArtifactBatch>;

    async fn upload_artifact(
        &self,
        request: Request<Streaming<UploadArtifactRequest>>,
    ) -> Result<Response<Artifact>, Status> {
        let customer = Caller::of(&request)?.customer;
        let mut messages = request.into_inner();
        let missing = || Status::invalid_argument("the call has no messages");
        let mut head = messages.message().await?.ok_or_else(missing)?;
        let target = head.target.take().unwrap_or_default();
        let project = ProjectId::named(&target.project_id)?;
        let execution = ExecutionId::named(&target.execution_id)?;
        let run = execution::store::get(&self.db, customer, project, execution).await?;
        execution::rules::refuse_dispatched(&run)?;
        let purpose = Purpose {
            customer,
            execution,
            owner: execution.0,
            name: target.name,
            content_type: target.content_type,
        };
        let messages = stream::iter([Ok(head)]).chain(messages);
        let artifact = self.keep(purpose, pieces(messages.map_ok(|part| (part.chunk, part.last))));
        Ok(Response::new(artifact.await?))
    }

    async fn download_artifact(
        &self,
        request: Request<DownloadArtifactRequest>,
    ) -> Result<Response<Self::DownloadArtifactStream>, Status> {
        let request = request.into_inner();
        let customer = CustomerId::named(&request.customer_id).map_err(|_| forbidden())?;
        let id = ArtifactId::named(&request.id).map_err(|_| forbidden())?;
        let now = store::now(&self.db).await?;
        let DownloadArtifactRequest { name, expires, signature, .. } = request;
        self.links.check(customer, id, &name, expires, &signature, now)?;
        let kept = store::get(&self.db, customer, id).await?;
        let (size, pieces) = self.depot.get(customer, kept.execution_id, id).await?;
        let content_type = rules::served_as(&kept.content_type);
        let head = ArtifactBatch { content_type, size, ..ArtifactBatch::default() };
        let pieces = pieces.map_ok(|chunk| ArtifactBatch { chunk, ..ArtifactBatch::default() });
        let file = stream::iter([Ok(head)]).chain(pieces.map_err(Status::from));
        Ok(Response::new(Box::pin(file)))
    }
}

/// The pieces of a file up to the one that says that it is the last. A client that goes away in the
/// middle looks like the end of the stream.
pub(crate) fn pieces(
    messages: impl Stream<Item = Result<(bytes::Bytes, bool), Status>> + Send + 'static,
) -> Pieces {
    let messages = Box::pin(messages);
    Box::pin(stream::try_unfold((messages, false), async |(mut messages, is_done)| {
        if is_done {
            return Ok(None);
        }
        let broken = || Fault::Malformed("the body broke off".to_owned());
        let (chunk, last) = messages.try_next().await?.ok_or_else(broken)?;
        Ok(Some((chunk, (messages, last))))
    }))
}
