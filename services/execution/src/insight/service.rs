//! The gRPC service of insights.

use assay_auth::Caller;
use assay_proto::{
    Fault,
    execution::{InsightBatch, ListInsightsRequest, insight_service_server},
};
use assay_records::Check;
use assay_rpc::list::{Batches, answer};
use sqlx::PgPool;
use tonic::{Request, Response, Status};

use super::{
    days,
    ranking::{self, Ranking},
};
use crate::{catalog::Catalog, parent};

/// Default number of days.
const DAYS: i32 = 14;

impl Ranking {
    fn of(request: &ListInsightsRequest) -> Result<Self, Fault> {
        let mut check = Check::default();
        let days = request.days.unwrap_or(DAYS);
        check.range("days", days, 1..=days::MOST);
        check.text("branch", request.branch.as_deref().unwrap_or_default());
        check.done()?;
        let branch = request.branch.clone().filter(|branch| !branch.is_empty());
        Ok(Self { kind: request.kind(), days, branch })
    }
}

/// The gRPC service of insights.
pub(crate) struct InsightService {
    pub(crate) db: PgPool,
    pub(crate) catalog: Catalog,
}

#[tonic::async_trait]
impl insight_service_server::InsightService for InsightService {
    type ListInsightsStream = Batches<InsightBatch>;

    async fn list_insights(
        &self,
        request: Request<ListInsightsRequest>,
    ) -> Result<Response<Self::ListInsightsStream>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let ranking = Ranking::of(&request)?;
        let project =
            parent::project(&self.db, &self.catalog, &caller, &request.project_id).await?;
        let (db, customer) = (self.db.clone(), caller.customer);
        answer(request.page, move |slice| {
            let (db, ranking) = (db.clone(), ranking.clone());
            async move { ranking::list(&db, customer, project, &ranking, &slice).await }
        })
        .await
    }
}
