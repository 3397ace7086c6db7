//! Customers, compared with what the identity service has of them.

use assay_events::KnownCustomer;
use assay_ledger::deletion::store::ALL_PROJECTS;
use assay_proto::{CustomerId, Fault};
use assay_records::appliances;
use sqlx::{PgExecutor, PgTransaction};

/// Returns those of some customers that this service has deleted, although the identity service has them.
pub async fn deleted_customers(
    db: impl PgExecutor<'_>,
    known: &[KnownCustomer],
) -> Result<Vec<CustomerId>, Fault> {
    let live = KnownCustomer::live(known, &[]).map(KnownCustomer::id);
    let deleted = sqlx::query_scalar(
        "select customer_id from deletion
         where customer_id = any($1) and project_id = $2
         order by customer_id",
    );
    let deleted = deleted.bind(live.collect::<Vec<_>>()).bind(ALL_PROJECTS);
    Ok(deleted.fetch_all(db).await?)
}

/// Lets the events that change what [`compare_customers`] stores wait until the end of a transaction. So what is read
/// from the identity service afterwards is not older than what they have stored.
pub async fn lock_customers(tx: &mut PgTransaction<'_>) -> Result<(), Fault> {
    let lock = "lock table appliances, customer_state in share row exclusive mode";
    sqlx::query(lock).execute(&mut **tx).await?;
    Ok(())
}

/// Describes the appliances, and the archived customers, that differ from those of the identity service. Stores the
/// latter if asked for.
pub async fn compare_customers(
    tx: &mut PgTransaction<'_>,
    known: &[KnownCustomer],
    repairs: bool,
) -> Result<Vec<String>, Fault> {
    let deleted = deleted_customers(&mut **tx, known).await?;
    let live = KnownCustomer::live(known, &deleted);
    let (states, known): (Vec<_>, Vec<_>) =
        live.map(|one| ((one.id(), one.is_archived), one.appliances.clone())).unzip();
    let mut differing = differing_states(tx, &states).await?;
    differing.extend(appliances::differing(tx, &known).await?);
    if repairs {
        replace_states(tx, &states).await?;
        appliances::replace(tx, &known).await?;
    }
    Ok(differing)
}

/// Describes the customers that are archived here and not in the identity service, or the other way around.
async fn differing_states(
    tx: &mut PgTransaction<'_>,
    known: &[(CustomerId, bool)],
) -> Result<Vec<String>, Fault> {
    let (customers, archived): (Vec<_>, Vec<_>) = known.iter().copied().unzip();
    let differing = sqlx::query_scalar(
        "select format('customer %s: ', known.customer_id)
             || case when known.is_archived
                then 'is archived in identity, but its share links grant access'
                else 'is not archived in identity, but its share links grant no access' end
         from unnest($1::uuid[], $2::bool[]) as known (customer_id, is_archived)
         left join customer_state s on s.customer_id = known.customer_id
         where coalesce(s.is_archived, false) <> known.is_archived
         order by known.customer_id",
    );
    Ok(differing.bind(customers).bind(archived).fetch_all(&mut **tx).await?)
}

/// Stores which customers are archived. Their times stay, so that an event which has not arrived yet counts.
async fn replace_states(
    tx: &mut PgTransaction<'_>,
    known: &[(CustomerId, bool)],
) -> Result<(), Fault> {
    let (customers, archived): (Vec<_>, Vec<_>) = known.iter().copied().unzip();
    let replace = sqlx::query(
        "insert into customer_state as s (customer_id, is_archived, changed_at)
         select customer_id, is_archived, '-infinity'
         from unnest($1::uuid[], $2::bool[]) as known (customer_id, is_archived)
         where is_archived or exists (
             select from customer_state stored where stored.customer_id = known.customer_id
         )
         order by customer_id
         on conflict on constraint customer_state_pkey do update
         set is_archived = excluded.is_archived
         where s.is_archived <> excluded.is_archived",
    );
    replace.bind(customers).bind(archived).execute(&mut **tx).await?;
    Ok(())
}
