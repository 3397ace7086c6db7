//! Rules for API tokens.

use assay_auth::Caller;
use assay_proto::{Fault, Permissions, Timestamp, identity::ApiTokenInput};
use assay_records::Check;
use sqlx::PgPool;

/// Checks an API token, and sorts its permissions.
pub(super) async fn valid(db: &PgPool, input: ApiTokenInput) -> Result<ApiTokenInput, Fault> {
    let mut check = Check::default();
    check.name_on_one_line("Name", &input.name);
    let permissions = Permissions::parse("UsagePermission", &input.usage_permission);
    let permissions = check.read(permissions)?.unwrap_or_default();
    let now: Timestamp = sqlx::query_scalar("select now()").fetch_one(db).await?;
    if input.expires_at.is_some_and(|time| time <= now) {
        check.refuse("ExpiresAt", "must be in the future");
    }
    check.done()?;
    Ok(ApiTokenInput { usage_permission: permissions.to_string(), ..input })
}

/// Rejects API tokens, which must not create others that outlive them.
pub(super) fn reject_api_tokens(caller: &Caller) -> Result<(), Fault> {
    if caller.api_token.is_none() {
        return Ok(());
    }
    Err(Fault::Forbidden(
        "API tokens cannot create or delete API tokens; log in with a password".to_owned(),
    ))
}
