//! The gRPC service of debug records.

use assay_auth::Caller;
use assay_ledger::instance;
use assay_proto::{
    TestReportId,
    execution::{
        DebugReport, DebugResult, GetDebugRecordRequest, InstanceEntry, debug_service_server,
    },
};
use assay_rpc::list::{self, Batches};
use futures::{StreamExt, TryStreamExt, stream};
use sqlx::PgPool;
use tonic::{Request, Response, Status};

use super::store;

/// The gRPC service of debug records.
pub(crate) struct DebugService {
    pub(crate) db: PgPool,
}

#[tonic::async_trait]
impl debug_service_server::DebugService for DebugService {
    type GetDebugRecordStream = Batches<DebugReport>;

    async fn get_debug_record(
        &self,
        request: Request<GetDebugRecordRequest>,
    ) -> Result<Response<Self::GetDebugRecordStream>, Status> {
        let customer = Caller::of(&request)?.customer;
        let id = TestReportId::from_path(&request.get_ref().id)?;
        let report = store::report(&self.db, customer, id).await?;
        let schedules = store::schedules(&self.db, customer, id).await?;
        let db = self.db.clone();
        let results = list::whole(None, None, move |slice| {
            let db = db.clone();
            async move { instance::list(&db, customer, id, &slice).await }
        });
        let mut results = Box::pin(results.map_ok(|part| part.into_iter().map(result).collect()));
        let first = results.try_next().await?.unwrap_or_default();
        let first = DebugReport { schedules, results: first, ..report };
        let rest = results
            .map_ok(|results| DebugReport { results, ..DebugReport::default() })
            .map_err(Status::from);
        Ok(Response::new(Box::pin(stream::iter([Ok(first)]).chain(rest))))
    }
}

fn result(entry: InstanceEntry) -> DebugResult {
    DebugResult {
        id: entry.id,
        instance_nr: entry.instance_nr,
        result: entry.result,
        duration_in_sec: entry.duration_in_sec,
        start_date_time: entry.start_date_time,
        finish_date_time: entry.finish_date_time,
    }
}
