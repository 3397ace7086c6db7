//! Settings of users in PostgreSQL. Every statement names the customer.

use assay_proto::{
    CustomerId, Fault, InputColumns, UserId,
    identity::{UserSettings, UserSettingsInput},
};
use sqlx::{AssertSqlSafe, PgConnection, PgTransaction};

/// Returns the settings of a member, or their defaults. Fails for users without a membership.
pub(super) async fn get(
    db: &mut PgConnection,
    customer: CustomerId,
    user: UserId,
) -> Result<UserSettings, Fault> {
    let columns = UserSettings::COLUMNS;
    let settings = sqlx::query_as(AssertSqlSafe(format!(
        "select {columns} from user_settings where customer_id = $1 and user_id = $2"
    )));
    if let Some(settings) = settings.bind(customer).bind(user).fetch_optional(&mut *db).await? {
        return Ok(settings);
    }
    let member = sqlx::query("select from membership where customer_id = $1 and id = $2");
    let member = member.bind(customer).bind(user).fetch_optional(db).await?;
    member.ok_or(Fault::NotFound("user settings"))?;
    Ok(UserSettings { data_version: "0".to_owned(), ..UserSettings::default() })
}

/// Like [`get`], and locks the settings.
pub(super) async fn lock(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    user: UserId,
) -> Result<UserSettings, Fault> {
    sqlx::query("select from membership where customer_id = $1 and id = $2 for no key update")
        .bind(customer)
        .bind(user)
        .execute(&mut **tx)
        .await?;
    get(tx, customer, user).await
}

/// Writes the locked settings of a member.
pub(super) async fn put(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    user: UserId,
    settings: &UserSettingsInput,
) -> Result<UserSettings, Fault> {
    let (columns, values) = (UserSettingsInput::COLUMNS, UserSettingsInput::values(3));
    let (assignments, returned) = (UserSettingsInput::assignments(3), UserSettings::COLUMNS);
    let put = sqlx::query_as(AssertSqlSafe(format!(
        "insert into user_settings (customer_id, user_id, {columns}) values ($1, $2, {values})
         on conflict on constraint user_settings_pkey do update
         set {assignments}, revision = user_settings.revision + 1
         returning {returned}"
    )));
    Ok(settings.bind(put.bind(customer).bind(user)).fetch_one(&mut **tx).await?)
}
