//! The search for incidents that begins when an execution has completed.

use assay_proto::{CustomerId, Fault};
use sqlx::PgTransaction;

use crate::progress::execution::ExecutionState;

/// Has incidents sought in an execution that has just completed, unless it is of the past.
pub async fn seek(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    state: &ExecutionState,
) -> Result<(), Fault> {
    if state.is_past() {
        return Ok(());
    }
    let seek = sqlx::query(
        "insert into incident_search (customer_id, execution_id) values ($1, $2::uuid)
         on conflict on constraint incident_search_pkey do nothing",
    );
    seek.bind(customer).bind(&state.execution.id).execute(&mut **tx).await?;
    Ok(())
}
