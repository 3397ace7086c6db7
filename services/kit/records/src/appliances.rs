//! Appliances: the target groups that the environments of a customer may name, and its engines may serve.
//!
//! The identity service owns them. Services that check target groups store them from its events, in a table
//! `appliances` of their own.

use assay_proto::{CustomerId, Fault, events::AppliancesChanged};
use sqlx::{PgExecutor, PgTransaction};

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
