//! Numbers in PostgreSQL. Every statement is bound to one customer.

use std::collections::HashMap;

use assay_fair::Throttle;
use assay_ledger::column::column;
use assay_proto::{CustomerId, ExecutionId, Fault, ProjectId};
use sqlx::{PgExecutor, PgPool, PgTransaction};
use uuid::Uuid;

use super::number::{Kind, Numbered, identifier, of_identifier};

/// A record that needs a number.
#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    pub(super) scope: Uuid,
    pub(super) key: String,
    pub(super) details: String,
}

/// Returns the numbers of records, in their order, with their details only if they are wanted.
/// Assigns missing ones: two statements for any number of records, or one if all are known.
pub(super) async fn assign(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    kind: Kind,
    records: &[Record],
    with_details: bool,
) -> Result<Vec<Numbered>, Fault> {
    let stated = |record: &&Record| kind == Kind::TestCase && of_identifier(&record.key).is_some();
    let sought: Vec<&Record> = records.iter().filter(|record| !stated(record)).collect();
    let mut known = of_keys(tx, customer, kind, &sought, with_details).await?;
    let is_known = |record: &&Record| known.contains_key(&(record.scope, record.key.clone()));
    if !sought.iter().all(is_known) {
        insert(tx, customer, kind, &sought).await?;
        // A concurrent transaction may have assigned some of them.
        known = of_keys(tx, customer, kind, &sought, with_details).await?;
    }
    let numbered = |record: &Record| match of_identifier(&record.key) {
        Some(number) if kind == Kind::TestCase => Some(Numbered {
            number,
            scope_id: record.scope,
            key: record.key.clone(),
            details: "{}".to_owned(),
        }),
        _ => known.get(&(record.scope, record.key.clone())).cloned(),
    };
    let missing = || Fault::internal("a record has no number");
    records.iter().map(|record| numbered(record).ok_or_else(missing)).collect()
}

/// Returns the records with these keys that have numbers, by scope and key, with their details if they are wanted.
pub(super) async fn of_keys(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    kind: Kind,
    records: &[&Record],
    with_details: bool,
) -> Result<HashMap<(Uuid, String), Numbered>, Fault> {
    if records.is_empty() {
        return Ok(HashMap::new());
    }
    let found: Vec<Numbered> = sqlx::query_as(
        "select n.number, n.scope_id, n.key, case when $5 then n.details else '' end as details
         from (select distinct scope_id, key from unnest($3::uuid[], $4::text[])
                   as sought (scope_id, key)) as sought
         join number n on n.customer_id = $1 and n.scope_id = sought.scope_id and n.kind = $2
             and n.key = sought.key",
    )
    .bind(customer)
    .bind(kind.name())
    .bind(column(records, |record| record.scope))
    .bind(column(records, |record| record.key.as_str()))
    .bind(with_details)
    .fetch_all(&mut **tx)
    .await?;
    Ok(found.into_iter().map(|one| ((one.scope_id, one.key.clone()), one)).collect())
}

/// Inserts the records that have no number, in their order. The row of the counter is locked before
/// they are inserted, so concurrent transactions do not deadlock.
async fn insert(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    kind: Kind,
    records: &[&Record],
) -> Result<(), Fault> {
    sqlx::query(
        "with missing as (
             select scope_id, key, min(position) as position
             from unnest($3::uuid[], $4::text[]) with ordinality as sought (scope_id, key, position)
             where not exists (
                 select from number n
                 where n.customer_id = $1 and n.scope_id = sought.scope_id and n.kind = $2
                   and n.key = sought.key
             )
             group by scope_id, key
         ),
         counted as (
             insert into number_counter as c (customer_id, kind, last)
             select $1, $2, $6::bigint + count(*) from missing
             on conflict on constraint number_counter_pkey do update
             set last = c.last + (select count(*) from missing)
             returning last
         )
         insert into number (customer_id, kind, number, scope_id, key, details)
         select $1, $2,
                last - (select count(*) from missing) + row_number() over (order by position),
                scope_id, key, ($5::text[])[position]
         from missing cross join counted
         on conflict on constraint number_key_key do nothing",
    )
    .bind(customer)
    .bind(kind.name())
    .bind(column(records, |record| record.scope))
    .bind(column(records, |record| record.key.as_str()))
    .bind(column(records, |record| record.details.as_str()))
    .bind(kind.before_first())
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Finds the record with a number.
pub(super) async fn find(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    kind: Kind,
    number: i64,
) -> Result<Numbered, Fault> {
    let found = find_all(db, customer, kind, &[number]).await?;
    found.into_iter().next().ok_or(Fault::NotFound(kind.noun()))
}

/// Finds the records with these numbers, by number.
pub(super) async fn find_all(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    kind: Kind,
    numbers: &[i64],
) -> Result<Vec<Numbered>, Fault> {
    let found = sqlx::query_as(
        "select number, scope_id, key, details from number
         where customer_id = $1 and kind = $2 and number = any($3)
         order by number",
    );
    Ok(found.bind(customer).bind(kind.name()).bind(numbers).fetch_all(db).await?)
}

/// Returns the identifiers of the test cases of a project that have these numbers.
pub(super) async fn identifiers(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    project: ProjectId,
    numbers: &[i64],
) -> Result<HashMap<i64, String>, Fault> {
    let assigned: Vec<(i64, String)> = sqlx::query_as(
        "select number, key from number
         where customer_id = $1 and kind = $2 and number = any($3) and scope_id = $4",
    )
    .bind(customer)
    .bind(Kind::TestCase.name())
    .bind(numbers)
    .bind(project)
    .fetch_all(db)
    .await?;
    let stated = numbers.iter().filter_map(|number| Some((*number, identifier(*number)?)));
    Ok(assigned.into_iter().chain(stated).collect())
}

/// Lists records of a scope, by number.
pub(super) async fn list(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    kind: Kind,
    scope: Uuid,
    (offset, limit): (i64, i64),
) -> Result<Vec<Numbered>, Fault> {
    let list = sqlx::query_as(
        "select number, scope_id, key, details from number
         where customer_id = $1 and scope_id = $2 and kind = $3
         order by number
         offset $4 limit $5",
    );
    let list = list.bind(customer).bind(scope).bind(kind.name()).bind(offset).bind(limit);
    Ok(list.fetch_all(db).await?)
}

/// Replaces the details of a record, and returns it.
pub(super) async fn update(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    kind: Kind,
    number: i64,
    details: &str,
) -> Result<Numbered, Fault> {
    let update = sqlx::query_as(
        "update number set details = $4
         where customer_id = $1 and kind = $2 and number = $3
         returning number, scope_id, key, details",
    );
    let update = update.bind(customer).bind(kind.name()).bind(number).bind(details);
    update.fetch_optional(db).await?.ok_or(Fault::NotFound(kind.noun()))
}

/// Deletes the numbers of an execution and its results.
pub(crate) async fn remove_of_execution(
    db: &PgPool,
    throttle: &mut Throttle,
    customer: CustomerId,
    execution: ExecutionId,
) -> Result<(), Fault> {
    remove(db, throttle, customer, Some(execution.0), None).await
}

/// Deletes the numbers of the results and attachments of an execution, which have expired.
pub(crate) async fn remove_of_results(
    db: &PgPool,
    throttle: &mut Throttle,
    customer: CustomerId,
    execution: ExecutionId,
) -> Result<(), Fault> {
    for kind in [Kind::Result, Kind::Attachment] {
        remove(db, throttle, customer, Some(execution.0), Some(kind)).await?;
    }
    Ok(())
}

/// Deletes the numbers of a deleted project, or all of a deleted customer.
pub(crate) async fn remove_of_deleted(
    db: &PgPool,
    throttle: &mut Throttle,
    customer: CustomerId,
    project: Option<ProjectId>,
) -> Result<(), Fault> {
    remove(db, throttle, customer, project.map(|project| project.0), None).await?;
    if project.is_none() {
        let counters = sqlx::query("delete from number_counter where customer_id = $1");
        counters.bind(customer).execute(db).await?;
    }
    Ok(())
}

/// Deletes numbers, of any scope and kind by default, in short statements.
async fn remove(
    db: &PgPool,
    throttle: &mut Throttle,
    customer: CustomerId,
    scope: Option<Uuid>,
    kind: Option<Kind>,
) -> Result<(), Fault> {
    let statement = match scope {
        Some(_) => {
            "delete from number where customer_id = $1 and (kind, number) in (
                 select kind, number from number
                 where customer_id = $1 and scope_id = $2 and kind = coalesce($3, kind)
                 limit $4
             )"
        }
        None => {
            "delete from number where customer_id = $1 and (kind, number) in (
                 select kind, number from number
                 where customer_id = $1 and $2::uuid is null and kind = coalesce($3, kind)
                 limit $4
             )"
        }
    };
    loop {
        let (begun, limit) = (std::time::Instant::now(), throttle.batch_size());
        let delete = sqlx::query(statement).bind(customer).bind(scope).bind(kind.map(Kind::name));
        let deleted = delete.bind(limit).execute(db).await?.rows_affected();
        if deleted < limit.unsigned_abs() {
            return Ok(());
        }
        throttle.pause(begun.elapsed()).await;
    }
}
