//! The gRPC service of artifacts.

use assay_auth::Caller;
use assay_fair::Turn;
use assay_ledger::{
    execution::{self, rules::require_external},
    lease,
};
use assay_proto::{
    ArtifactId, CustomerId, ExecutionId, Fault, LeaseId, ProjectId, ShareLinkId,
    execution::{
        Artifact, ArtifactBatch, ArtifactsBatch, DownloadArtifactRequest, ListArtifactsRequest,
        UploadArtifactRequest, UploadArtifactTarget, artifact_service_server,
    },
};
use assay_rpc::{
    body::open,
    list::{Batches, answer},
};
use assay_storage::{Pieces, Place, Wanted, parse_sha256, pieces_until};
use futures::{StreamExt, TryStreamExt, stream};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};

use super::{
    Artifacts,
    link::{self, forbidden},
    place, rules,
    store::{self, Announced, NewArtifact, StoredArtifact},
};

#[tonic::async_trait]
impl artifact_service_server::ArtifactService for Artifacts {
    type ListArtifactsStream = Batches<ArtifactsBatch>;
    type UploadArtifactStream = Batches<Artifact>;
    type UploadArtifactOfLeaseStream = Batches<Artifact>;
    type DownloadArtifactStream = Batches<ArtifactBatch>;

    async fn list_artifacts(
        &self,
        request: Request<ListArtifactsRequest>,
    ) -> Result<Response<Self::ListArtifactsStream>, Status> {
        let customer = Caller::of(&request)?.customer;
        let ListArtifactsRequest { project_id, execution_id, page } = request.into_inner();
        let project = ProjectId::from_path_unless_empty(&project_id)?;
        let execution = ExecutionId::from_path(&execution_id)?;
        execution::store::find(&self.db, customer, project, execution).await?;
        let this = self.clone();
        answer(page, move |slice| {
            let this = this.clone();
            async move { this.list(customer, execution, &slice).await }
        })
        .await
    }

    async fn upload_artifact(
        &self,
        request: Request<Streaming<UploadArtifactRequest>>,
    ) -> Result<Response<Self::UploadArtifactStream>, Status> {
        let customer = Caller::of(&request)?.customer;
        let (this, messages) = (self.clone(), request.into_inner());
        let stored = async move { this.receive_of_execution(customer, messages).await };
        Ok(Response::new(Box::pin(stream::once(stored))))
    }

    async fn upload_artifact_of_lease(
        &self,
        request: Request<Streaming<UploadArtifactRequest>>,
    ) -> Result<Response<Self::UploadArtifactOfLeaseStream>, Status> {
        let customer = Caller::of(&request)?.customer;
        let (this, messages) = (self.clone(), request.into_inner());
        let stored = async move { this.receive_of_lease(customer, messages).await };
        Ok(Response::new(Box::pin(stream::once(stored))))
    }

    async fn download_artifact(
        &self,
        request: Request<DownloadArtifactRequest>,
    ) -> Result<Response<Self::DownloadArtifactStream>, Status> {
        let request = request.into_inner();
        let customer = CustomerId::from_path(&request.customer_id).map_err(|_| forbidden())?;
        let id = ArtifactId::from_path(&request.id).map_err(|_| forbidden())?;
        let DownloadArtifactRequest { name, expires, signature, share_link_id, .. } = request;
        let DownloadArtifactRequest { range, if_id, head_only, .. } = request;
        let share_link = share_link_id.as_deref().map(ShareLinkId::from_path).transpose();
        let share_link = share_link.map_err(|_| forbidden())?;
        // A forged link costs no statement.
        self.links.verify(customer, id, &name, (expires, share_link), &signature)?;
        link::check_time(expires, store::now(&self.db).await?)?;
        let artifact = store::get(&self.db, customer, id).await?;
        if let Some(share_link) = share_link {
            let execution = artifact.execution_id;
            let is_shared = store::is_shared(&self.db, customer, execution, share_link).await?;
            is_shared.then_some(()).ok_or_else(forbidden)?;
        }
        // The file of an artifact never changes.
        let wanted = Wanted { range, if_tag: if_id, head_only };
        let place = place(customer, artifact.execution_id, id);
        Ok(Response::new(self.contents(place, &artifact, wanted).await?))
    }
}

impl Artifacts {
    /// Returns a part of the file of an artifact, in chunks. The first message describes it.
    async fn contents(
        &self,
        place: Place,
        artifact: &StoredArtifact,
        wanted: Wanted,
    ) -> Result<Batches<ArtifactBatch>, Fault> {
        let part = wanted.part(artifact.size, &place.id.to_string());
        let chunks = self.file_store.get_part(place, &part).await?;
        let head = ArtifactBatch {
            content_type: rules::served_as(&artifact.content_type),
            size: artifact.size,
            range: part.range,
            is_unsatisfiable: part.is_unsatisfiable,
            ..ArtifactBatch::default()
        };
        let chunks = chunks.map_ok(|chunk| ArtifactBatch { chunk, ..ArtifactBatch::default() });
        Ok(stream::iter([Ok(head)]).chain(chunks.map_err(Status::from)).boxed())
    }

    /// Receives and stores a file of an execution.
    async fn receive_of_execution(
        &self,
        customer: CustomerId,
        messages: Streaming<UploadArtifactRequest>,
    ) -> Result<Artifact, Status> {
        let (target, file) = open_file(messages).await?;
        let project = ProjectId::from_path_unless_empty(&target.project_id)?;
        let execution = ExecutionId::from_path(&target.execution_id)?;
        let state = execution::store::find(&self.db, customer, project, execution).await?;
        require_external(&state)?;
        let artifact = NewArtifact {
            customer,
            execution,
            owner: execution.0,
            lease: None,
            announced: announced(&target)?,
            name: target.name,
            content_type: target.content_type,
            companion: None,
        };
        self.store_apart(artifact, file).await
    }

    /// Receives and stores a file of a lease.
    async fn receive_of_lease(
        &self,
        customer: CustomerId,
        messages: Streaming<UploadArtifactRequest>,
    ) -> Result<Artifact, Status> {
        let (target, file) = open_file(messages).await?;
        let id = LeaseId::from_path(&target.lease_id)?;
        rules::check_not_reserved(id, &target.name)?;
        let schedule = lease::store::schedule_of(&self.db, customer, id).await?;
        lease::store::check_not_lost(&self.db, customer, id).await?;
        let artifact = NewArtifact {
            customer,
            execution: schedule.execution_id,
            owner: schedule.test_report_id.0,
            lease: Some(id),
            announced: announced(&target)?,
            name: target.name,
            content_type: target.content_type,
            companion: None,
        };
        self.store_apart(artifact, file).await
    }

    /// Stores a file in a task of its own, which goes on if the client breaks off, so that nothing is left of the file,
    /// and its room is free at once. Only the wait for its turn ends then.
    async fn store_apart(&self, new: NewArtifact, file: Pieces) -> Result<Artifact, Status> {
        let (this, file) = (self.clone(), pieces_until(file, self.runtime.end_of_calls()));
        let gone = CancellationToken::new();
        let _gone = gone.clone().drop_guard();
        let turn = Turn::new(&self.uploads, new.customer).until(gone);
        let storing = async move { this.store(new, file, Some(turn)).await };
        self.runtime.spawn_call(storing).await.map_err(Fault::internal)?
    }
}

/// Returns what the client has said about a file.
fn announced(target: &UploadArtifactTarget) -> Result<Announced, Fault> {
    let sha256 = Some(&target.sha256).filter(|text| !text.is_empty());
    let sha256 = sha256.map(|text| parse_sha256("Digest", text)).transpose()?;
    Ok(Announced { size: target.size.unwrap_or_default().max(0), sha256 })
}

/// Reads the target of an upload. Returns it with the chunks of the file, up to the one that is
/// marked as the last. A stream that ends before that was aborted by the client.
async fn open_file(
    messages: Streaming<UploadArtifactRequest>,
) -> Result<(UploadArtifactTarget, Pieces), Status> {
    let (target, pieces) = open(messages).await?;
    let pieces = stream::try_unfold((Box::pin(pieces), false), async |(mut pieces, is_done)| {
        if is_done {
            return Ok(None);
        }
        let broken = || Fault::Malformed("the body broke off".to_owned());
        let piece = pieces.try_next().await?.ok_or_else(broken)?;
        Ok(Some((piece.chunk, (pieces, piece.last))))
    });
    Ok((target, Box::pin(pieces)))
}
