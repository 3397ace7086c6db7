//! The task that derives the causes of stored failures again after rules have changed, in a short transaction for
//! each execution.

use std::time::{Duration, Instant};

use assay_database::{Database, begin};
use assay_fair::rest;
use assay_ledger::failure::derivation;
use assay_proto::{CustomerId, Fault, ProjectId};
use assay_runtime::Runtime;
use assay_work::{Attempt, Patience, Queue, Waiting, Work};
use sqlx::PgPool;
use uuid::Uuid;

/// Deriving the causes of a project. If it is dropped, stored failures keep the causes that they have.
pub(crate) const CAUSES: Work = Work {
    kind: "causes",
    queue: Queue::Unfinished {
        patience: Patience::of_derivations(),
        pending: "exists (
            select from changed_causes c
            where c.customer_id = w.customer_id and c.project_id = w.id
        )",
        drop: "delete from changed_causes
               where (customer_id, project_id) in (select * from unnest($1::uuid[], $2::uuid[]))",
    },
};

/// Interval between rounds.
const INTERVAL: Duration = Duration::from_secs(1);

/// The projects whose rules have changed.
const CHANGED: Waiting =
    Waiting { table: "changed_causes", id: "project_id", condition: derivation::SETTLED };

/// Number of executions of a project whose causes are derived in a turn, so that a large project does not delay
/// others.
const STEPS: usize = 20;

/// Starts the task.
pub(crate) fn spawn(runtime: &Runtime, database: &Database) {
    let failure = "cannot read the projects whose causes have changed";
    let round = |db| async move { derive_changed(&db).await };
    database.every(runtime, "causes", INTERVAL, failure, round);
}

/// Derives the causes of all projects whose rules have changed, unless another replica is doing so. A failure
/// of one does not affect the others.
pub async fn derive_changed(db: &PgPool) -> Result<(), Fault> {
    let due = |db: PgPool| async move {
        derivation::settle(&db).await?;
        CAUSES.due_of(&db, CHANGED).await
    };
    CAUSES.do_all(db, due, derive).await
}

/// Derives the causes of some executions of a project. The rest has another turn.
async fn derive(
    db: PgPool,
    customer: CustomerId,
    project: Uuid,
    attempt: Attempt,
) -> Result<(), Fault> {
    for _ in 0..STEPS {
        let began = Instant::now();
        let mut tx = begin(&db).await?;
        let is_more = derivation::step(&mut tx, customer, ProjectId(project)).await?;
        tx.commit().await?;
        if !is_more {
            break;
        }
        attempt.progressed(&db).await?;
        rest(began.elapsed()).await;
    }
    attempt.done(&db).await
}
