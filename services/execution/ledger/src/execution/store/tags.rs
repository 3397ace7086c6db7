//! The tags of executions, for lists that are filtered by one. They follow from the text with all tags.

use assay_proto::{CustomerId, ExecutionId, Fault, ProjectId};
use sqlx::PgTransaction;

/// Returns the tags in a text that separates them by commas, in their order, each once.
pub fn of(text: &str) -> Vec<&str> {
    let mut tags: Vec<_> =
        text.split(',').map(|tag| tag.trim_matches(' ')).filter(|tag| !tag.is_empty()).collect();
    tags.sort_unstable();
    tags.dedup();
    tags
}

/// Inserts the tags of an execution that has none.
pub async fn insert(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: ExecutionId,
    text: &str,
) -> Result<(), Fault> {
    let insert = sqlx::query(
        "insert into execution_tag (customer_id, project_id, tag, execution_id)
         select $1, $2, tag, $3 from unnest($4::text[]) as tag",
    );
    insert.bind(customer).bind(project).bind(id).bind(of(text)).execute(&mut **tx).await?;
    Ok(())
}

/// Replaces the tags of a locked execution.
pub async fn replace(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    id: ExecutionId,
    text: &str,
) -> Result<(), Fault> {
    sqlx::query("delete from execution_tag where customer_id = $1 and execution_id = $2")
        .bind(customer)
        .bind(id)
        .execute(&mut **tx)
        .await?;
    insert(tx, customer, project, id, text).await
}

/// Returns the stored tags of an execution, in their order.
pub async fn stored(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    id: ExecutionId,
) -> Result<Vec<String>, Fault> {
    let tags = sqlx::query_scalar(
        "select tag from execution_tag where customer_id = $1 and execution_id = $2
         order by tag collate \"C\"",
    );
    Ok(tags.bind(customer).bind(id).fetch_all(&mut **tx).await?)
}
