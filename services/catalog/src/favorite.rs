//! Favorites of users.

mod store;

use assay_auth::Caller;
use assay_proto::{
    Fault, ProjectId, TestCaseId, TestSetId,
    catalog::{AddFavoriteRequest, RecordKind, RemoveFavoriteRequest, favorite_service_server},
};
use sqlx::PgPool;
use tonic::{Request, Response, Status};
use uuid::Uuid;

pub(crate) struct FavoriteService {
    pub(crate) db: PgPool,
}

#[tonic::async_trait]
impl favorite_service_server::FavoriteService for FavoriteService {
    async fn add_favorite(
        &self,
        request: Request<AddFavoriteRequest>,
    ) -> Result<Response<()>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let kind = request.kind();
        let favorite = request.favorite.unwrap_or_default();
        if favorite.foreign_id.is_empty() {
            return Err(Fault::invalid("ForeignId", "is required").into());
        }
        let id = parse_id(kind, &favorite.foreign_id)?;
        store::find(&self.db, caller.customer, kind, id).await?;
        store::insert(&self.db, caller.customer, caller.user, kind, id).await?;
        Ok(Response::new(()))
    }

    async fn remove_favorite(
        &self,
        request: Request<RemoveFavoriteRequest>,
    ) -> Result<Response<()>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let kind = request.kind();
        let id = parse_id(kind, &request.id)?;
        store::find(&self.db, caller.customer, kind, id).await?;
        store::delete(&self.db, caller.customer, caller.user, kind, id).await?;
        Ok(Response::new(()))
    }
}

/// Parses the id of a record.
fn parse_id(kind: RecordKind, id: &str) -> Result<Uuid, Fault> {
    match kind {
        RecordKind::Project => Ok(ProjectId::from_path(id)?.0),
        RecordKind::TestCase => Ok(TestCaseId::from_path(id)?.0),
        RecordKind::TestSet => Ok(TestSetId::from_path(id)?.0),
        RecordKind::Unspecified => Err(Fault::Malformed("the kind is missing".to_owned())),
    }
}
