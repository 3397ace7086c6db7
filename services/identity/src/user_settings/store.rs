//! Settings of users in PostgreSQL. Every statement names the customer.

use assay_proto::{
    CustomerId, Fault, UserId,
    identity::{UserSettings, UserSettingsInput},
};
use sqlx::{PgExecutor, PgTransaction};

/// Returns the settings of a member, or their defaults. Fails for users without a membership.
pub(super) async fn get(
    db: impl PgExecutor<'_>,
    customer: CustomerId,
    user: UserId,
) -> Result<UserSettings, Fault> {
    let settings = sqlx::query_as(
        "select coalesce(user_settings.mail_when_execution_ends, false)
                    as mail_when_execution_ends,
                coalesce(user_settings.revision, 0)::text as data_version
         from membership
         left join user_settings on user_settings.customer_id = membership.customer_id
                                and user_settings.user_id = membership.id
         where membership.customer_id = $1 and membership.id = $2",
    );
    let settings = settings.bind(customer).bind(user).fetch_optional(db).await?;
    settings.ok_or(Fault::NotFound("user settings"))
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
    get(&mut **tx, customer, user).await
}

/// Writes the locked settings of a member.
pub(super) async fn put(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    user: UserId,
    settings: &UserSettingsInput,
) -> Result<UserSettings, Fault> {
    let settings = sqlx::query_as(
        "insert into user_settings (customer_id, user_id, mail_when_execution_ends)
         values ($1, $2, $3)
         on conflict on constraint user_settings_pkey do update
         set mail_when_execution_ends = excluded.mail_when_execution_ends,
             revision = user_settings.revision + 1
         returning mail_when_execution_ends, revision::text as data_version",
    )
    .bind(customer)
    .bind(user)
    .bind(settings.mail_when_execution_ends)
    .fetch_one(&mut **tx)
    .await?;
    Ok(settings)
}
