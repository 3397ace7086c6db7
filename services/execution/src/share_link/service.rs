//! The gRPC service of share links.

use assay_auth::{Caller, new_secret};
use assay_database::begin;
use assay_events::{RecordKind, publish};
use assay_ledger::{event::record_of_execution, execution::store::find};
use assay_proto::{
    CustomerId, ExecutionId, Fault, ProjectId, ShareLinkId,
    execution::{
        CreateShareLinkRequest, DeleteShareLinkRequest, ListShareLinksRequest, NewShareLink,
        ShareLinkBatch, share_link_service_server,
    },
};
use assay_records::Action;
use assay_rpc::list::{Batches, answer};
use secrecy::ExposeSecret;
use sqlx::PgPool;
use tonic::{Request, Response, Status};

use super::{rules, store};
use crate::console_link::ConsoleLinks;

/// The gRPC service of share links.
pub(crate) struct ShareLinkService {
    pub(crate) db: PgPool,
    pub(crate) console: ConsoleLinks,
}

impl ShareLinkService {
    /// Returns the execution of a request, if it exists.
    async fn execution(
        &self,
        customer: CustomerId,
        project: Option<&str>,
        id: &str,
    ) -> Result<(ProjectId, ExecutionId), Fault> {
        let project = ProjectId::from_path_if_any(project)?;
        let id = ExecutionId::from_path(id)?;
        let found = find(&self.db, customer, project, id).await?;
        Ok((ProjectId::from_record(&found.execution.project_id)?, id))
    }
}

#[tonic::async_trait]
impl share_link_service_server::ShareLinkService for ShareLinkService {
    type ListShareLinksStream = Batches<ShareLinkBatch>;

    async fn list_share_links(
        &self,
        request: Request<ListShareLinksRequest>,
    ) -> Result<Response<Self::ListShareLinksStream>, Status> {
        let customer = Caller::of(&request)?.customer;
        let ListShareLinksRequest { project_id, execution_id, page } = request.into_inner();
        let (_, execution) = self.execution(customer, project_id.as_deref(), &execution_id).await?;
        let db = self.db.clone();
        answer(page, move |slice| {
            let db = db.clone();
            async move { store::list(&db, customer, execution, &slice).await }
        })
        .await
    }

    async fn create_share_link(
        &self,
        request: Request<CreateShareLinkRequest>,
    ) -> Result<Response<NewShareLink>, Status> {
        let caller = Caller::of(&request)?;
        let CreateShareLinkRequest { project_id, execution_id, share_link } = request.into_inner();
        let (default, latest) = store::ends(&self.db).await?;
        let end = rules::check_end(share_link.unwrap_or_default(), default, latest)?;
        let (project, execution) =
            self.execution(caller.customer, project_id.as_deref(), &execution_id).await?;
        let (token, hash) = new_secret("")?;
        let mut tx = begin(&self.db).await?;
        let link = store::insert(&mut tx, &caller, execution, &hash, end).await?;
        store::check_number(&mut tx, caller.customer, execution).await?;
        let created = (RecordKind::ShareLink, &link.id);
        let of = (project, execution);
        let created = record_of_execution(caller.customer, of, created, Action::Created)?;
        publish(&mut tx, &created).await?;
        tx.commit().await.map_err(Fault::from)?;
        let token = token.expose_secret().to_owned();
        let (url, badge_url) = (self.console.shared(&token), self.console.badge(&token));
        Ok(Response::new(NewShareLink { token, url, badge_url, ..link }))
    }

    async fn delete_share_link(
        &self,
        request: Request<DeleteShareLinkRequest>,
    ) -> Result<Response<()>, Status> {
        let customer = Caller::of(&request)?.customer;
        let DeleteShareLinkRequest { project_id, execution_id, id } = request.get_ref();
        let id = ShareLinkId::from_path(id)?;
        let (project, execution) =
            self.execution(customer, project_id.as_deref(), execution_id).await?;
        let mut tx = begin(&self.db).await?;
        store::delete(&mut *tx, customer, execution, id).await?;
        let (of, deleted) = ((project, execution), (RecordKind::ShareLink, id));
        let deleted = record_of_execution(customer, of, deleted, Action::Deleted)?;
        publish(&mut tx, &deleted).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(()))
    }
}
