//! The gRPC service of backtests.

use std::time::Duration;

use assay_auth::Caller;
use assay_fair::Shares;
use assay_proto::{
    Fault, ProjectId, TestSetId,
    catalog::GetGateRequest,
    execution::{
        Backtest, BacktestGateRequest, BacktestMonitorRequest, MonitorBacktest,
        backtest_service_server,
    },
};
use assay_records::Check;
use sqlx::PgPool;
use tonic::{Request, Response, Status};

use super::{
    replay::Replay,
    rules::{Selected, period},
    store,
};
use crate::{catalog::Catalog, monitor, parent};

/// Maximum number of backtests at the same time. Each reads as fast as the database answers.
const AT_ONCE: usize = 2;

/// Maximum wait for others to end. A call has 15 seconds in total.
const PATIENCE: Duration = Duration::from_secs(3);

/// The gRPC service of backtests.
pub(crate) struct BacktestService {
    db: PgPool,
    catalog: Catalog,
    database: Shares,
    /// Shares of the backtests that run at the same time.
    running: Shares,
}

impl BacktestService {
    pub(crate) fn new(db: &PgPool, database: &Shares, catalog: &Catalog) -> Self {
        let (db, catalog, database) = (db.clone(), catalog.clone(), database.clone());
        Self { db, catalog, database, running: Shares::new(AT_ONCE) }
    }
}

#[tonic::async_trait]
impl backtest_service_server::BacktestService for BacktestService {
    async fn backtest_gate(
        &self,
        request: Request<BacktestGateRequest>,
    ) -> Result<Response<Backtest>, Status> {
        let caller = Caller::of(&request)?;
        let BacktestGateRequest { project_id, test_set_id, backtest } = request.into_inner();
        ProjectId::from_path(&project_id)?;
        let set = TestSetId::from_path(&test_set_id)?;
        let input = backtest.unwrap_or_default();
        let selected = Selected::of(&input, store::begin_of_default(&self.db).await?)?;
        let request = GetGateRequest { project_id, test_set_id, replacement: input.gate };
        let gate = self.catalog.gate(&caller, request).await?;
        let _turn = self.running.acquire_within(caller.customer, PATIENCE).await?;
        let replay = Replay {
            db: &self.db,
            database: &self.database,
            customer: caller.customer,
            set,
            gate: &gate,
        };
        Ok(Response::new(replay.over(selected).await?))
    }

    async fn backtest_monitor(
        &self,
        request: Request<BacktestMonitorRequest>,
    ) -> Result<Response<MonitorBacktest>, Status> {
        let caller = Caller::of(&request)?;
        let BacktestMonitorRequest { project_id, backtest } = request.into_inner();
        let input = backtest.unwrap_or_default();
        let monitor = input.monitor.ok_or(Fault::invalid("Monitor", "is required"))?;
        let begin = store::begin_of_default(&self.db).await?;
        let mut check = Check::default();
        let period = period(input.from.unwrap_or(begin), input.to, &mut check);
        check.done()?;
        let project = parent::project(&self.db, &self.catalog, &caller, &project_id).await?;
        let _turn = self.running.acquire_within(caller.customer, PATIENCE).await?;
        let (db, database, customer) = (&self.db, &self.database, caller.customer);
        let replay = monitor::replay::Replay { db, database, customer, project };
        Ok(Response::new(replay.over(monitor, period).await?))
    }
}
