//! Appliances: the target groups that the environments of a customer may name, and its engines may serve.
//!
//! The identity service owns them. Services that check target groups store them from its events, in a table
//! `appliances` of their own.

use assay_proto::{CustomerId, Fault, events::AppliancesChanged};
use serde::Serialize;
use sqlx::{AssertSqlSafe, PgExecutor, PgTransaction, types::Json};

/// The appliances of a customer, as the identity service has them.
#[derive(Clone, Debug, Serialize)]
pub struct Appliances {
    pub customer_id: CustomerId,
    /// All target groups if it is empty.
    pub target_groups: Vec<String>,
    /// The revision of the customer.
    pub revision: i64,
}

/// Returns the target groups of a text, which separates them by commas.
pub fn parse(text: &str) -> Vec<String> {
    let mut groups: Vec<String> = Vec::new();
    for group in text.split(',').map(str::trim).filter(|group| !group.is_empty()) {
        if !groups.iter().any(|known| known == group) {
            groups.push(group.to_owned());
        }
    }
    groups
}

/// Stores the appliances of a customer, unless newer ones are stored.
pub async fn save(
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

/// Appliances that the identity service has, as the relation `known`.
const KNOWN: &str =
    "jsonb_to_recordset($1) as known (customer_id uuid, target_groups text[], revision bigint)";

/// Describes the stored appliances that are not those of the identity service, or from a later revision of the
/// customer, as after its restore: the next change would be ignored.
pub async fn differing(
    tx: &mut PgTransaction<'_>,
    known: &[Appliances],
) -> Result<Vec<String>, Fault> {
    let differing = AssertSqlSafe(format!(
        "select format(
             'customer %s: the appliances are %s of revision %s, but should be %s of revision %s',
             known.customer_id,
             coalesce(nullif(array_to_string(stored.target_groups, ', '), ''), 'all'),
             coalesce(stored.revision, 0),
             coalesce(nullif(array_to_string(known.target_groups, ', '), ''), 'all'),
             known.revision
         )
         from {KNOWN}
         left join appliances stored on stored.customer_id = known.customer_id
         where coalesce(stored.target_groups, '{{}}') <> known.target_groups
            or stored.revision > known.revision
         order by known.customer_id"
    ));
    Ok(sqlx::query_scalar(differing).bind(Json(known)).fetch_all(&mut **tx).await?)
}

/// Stores the appliances of the identity service where others are stored.
pub async fn replace(tx: &mut PgTransaction<'_>, known: &[Appliances]) -> Result<(), Fault> {
    let replace = AssertSqlSafe(format!(
        "insert into appliances (customer_id, target_groups, revision)
         select * from {KNOWN} where target_groups <> '{{}}' or exists (
             select from appliances stored where stored.customer_id = known.customer_id
         )
         order by customer_id
         on conflict on constraint appliances_pkey do update
         set target_groups = excluded.target_groups, revision = excluded.revision
         where appliances.target_groups <> excluded.target_groups
            or appliances.revision > excluded.revision"
    ));
    sqlx::query(replace).bind(Json(known)).execute(&mut **tx).await?;
    Ok(())
}

/// Deletes the appliances of a deleted customer.
pub async fn delete(tx: &mut PgTransaction<'_>, customer: CustomerId) -> Result<(), Fault> {
    let delete = sqlx::query("delete from appliances where customer_id = $1");
    delete.bind(customer).execute(&mut **tx).await?;
    Ok(())
}

/// Fails if a target group is not among the appliances of a customer.
pub async fn check(
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

/// Fails if a target group is not among the appliances. Without any, all target groups are. No target group
/// always is.
fn check_target_group(appliances: &[String], group: &str) -> Result<(), Fault> {
    if appliances.is_empty() || group.is_empty() || appliances.iter().any(|known| known == group) {
        return Ok(());
    }
    let groups = appliances.join(", ");
    let problem = format!(
        "must be one of the Appliances of the customer: {groups}; ask the operator for others"
    );
    Err(Fault::invalid("TargetGroup", problem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn appliances_are_separated_by_commas() {
        assert_eq!(parse(" linux, windows ,,linux,"), ["linux", "windows"]);
        assert_eq!(parse(" , "), [""; 0]);
    }

    #[test]
    fn only_appliances_are_target_groups_unless_there_are_none() {
        let some = parse("linux, windows");
        for (appliances, group, is_valid) in [
            (&some, "linux", true),
            (&some, "", true),
            (&some, "mac", false),
            (&some, "Linux", false),
            (&Vec::new(), "mac", true),
        ] {
            assert_eq!(check_target_group(appliances, group).is_ok(), is_valid, "{group}");
        }
    }
}
