//! The appliances of customers, from events of the identity service.

use assay_proto::{CustomerId, Fault, events::AppliancesChanged};
use assay_records::check_target_group;
use sqlx::{PgExecutor, PgTransaction};

/// Stores the appliances of a customer, unless newer ones are stored.
pub(crate) async fn save(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    changed: &AppliancesChanged,
) -> Result<(), Fault> {
    let save = sqlx::query(
        "insert into appliances (customer_id, target_groups, revision) values ($1, $2, $3)
         on conflict on constraint appliances_pkey do update
         set target_groups = excluded.target_groups, revision = excluded.revision
         where appliances.revision < excluded.revision",
    );
    let save = save.bind(customer).bind(&changed.target_groups).bind(changed.revision);
    save.execute(&mut **tx).await?;
    Ok(())
}

/// Deletes the appliances of a deleted customer.
pub(crate) async fn delete(tx: &mut PgTransaction<'_>, customer: CustomerId) -> Result<(), Fault> {
    let delete = sqlx::query("delete from appliances where customer_id = $1");
    delete.bind(customer).execute(&mut **tx).await?;
    Ok(())
}

/// Fails if a target group is not among the appliances of a customer.
pub(crate) async fn check(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    group: &str,
) -> Result<(), Fault> {
    if group.is_empty() {
        return Ok(());
    }
    let groups = sqlx::query_scalar("select target_groups from appliances where customer_id = $1");
    let groups: Option<Vec<String>> = groups.bind(customer).fetch_optional(db).await?;
    check_target_group(&groups.unwrap_or_default(), group)
}
