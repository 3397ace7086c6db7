//! The gRPC service of metrics.

use assay_auth::Caller;
use assay_proto::{
    Fault, ProjectId,
    execution::{GetMetricsRequest, ProjectMetrics, metrics_service_server},
};
use sqlx::PgPool;
use tonic::{Request, Response, Status};

use super::store;
use crate::catalog::Catalog;

/// The gRPC service of metrics.
pub(crate) struct MetricsService {
    pub(crate) db: PgPool,
    pub(crate) catalog: Catalog,
}

#[tonic::async_trait]
impl metrics_service_server::MetricsService for MetricsService {
    async fn get_metrics(
        &self,
        request: Request<GetMetricsRequest>,
    ) -> Result<Response<ProjectMetrics>, Status> {
        let caller = Caller::of(&request)?;
        let id = request.into_inner().project_id;
        let project = ProjectId::from_path(&id)?;
        let settings = self.catalog.metrics_settings(&caller, id).await?;
        if !settings.serves_metrics {
            let off = "the metrics are off: ServesMetrics of the project is false";
            return Err(Fault::Forbidden(off.to_owned()).into());
        }
        let branch = &settings.default_branch;
        let (outcomes, omitted) =
            store::outcomes(&self.db, caller.customer, project, branch).await?;
        Ok(Response::new(ProjectMetrics { project_name: settings.name, outcomes, omitted }))
    }
}
