//! Identifiers for test cases that are created without one.

use assay_proto::{CustomerId, Fault, ProjectId};
use sqlx::PgTransaction;

/// Minimum and maximum number of further numbers to check if too few were free.
const FEWEST_NUMBERS: i64 = 1000;
const MOST_NUMBERS: i64 = 100_000;

/// Returns free identifiers for `count` test cases.
pub(crate) async fn free(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    count: usize,
) -> Result<Vec<String>, Fault> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let mut last = last_number(tx, customer, project).await?;
    let (mut free, mut width) = (Vec::new(), i64::try_from(count).map_err(Fault::internal)?);
    // Numbers are rarely taken. If many are, each round checks more of them.
    while free.len() < count {
        let found = free_numbers(tx, customer, project, last, width).await?;
        let missing = count - free.len();
        last = found.get(missing - 1).copied().unwrap_or(last + width);
        free.extend(found.into_iter().take(missing));
        width = (width * 2).clamp(FEWEST_NUMBERS, MOST_NUMBERS);
    }
    sqlx::query("update project set last_case_number = $3 where customer_id = $1 and id = $2")
        .bind(customer)
        .bind(project)
        .bind(last)
        .execute(&mut **tx)
        .await?;
    Ok(free.into_iter().map(|number| format!("TC-{number}")).collect())
}

/// Returns the number of the last generated identifier, and locks it.
async fn last_number(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
) -> Result<i64, Fault> {
    let last = sqlx::query_scalar(
        "select last_case_number from project
         where customer_id = $1 and id = $2 and deleted_at is null
         for no key update",
    );
    let last = last.bind(customer).bind(project).fetch_optional(&mut **tx).await?;
    last.ok_or(Fault::NotFound("project"))
}

/// Returns those of the `width` numbers after `last` that no identifier contains, in order.
async fn free_numbers(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    last: i64,
    width: i64,
) -> Result<Vec<i64>, Fault> {
    let free = sqlx::query_scalar(
        "select number from generate_series($3::bigint + 1, $3::bigint + $4::bigint) as number
         where not exists (
             select from test_case
             where customer_id = $1 and project_id = $2 and live and identifier = 'TC-' || number
         )
         order by number",
    );
    let free = free.bind(customer).bind(project).bind(last).bind(width);
    Ok(free.fetch_all(&mut **tx).await?)
}
