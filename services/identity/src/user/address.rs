//! Changes of the email address of a user. A new address takes effect when its owner accepts.

use assay_auth::Caller;
use assay_proto::{Fault, UserId, identity::User};
use sqlx::PgTransaction;

use super::rules;
use crate::{
    audit::{self, Entry},
    invitation::{self, Invitations},
    mail::Mail,
    membership,
};

/// Invites another mailbox to replace that of a locked user. The present address ends a change that is pending.
pub(super) async fn change(
    invitations: Invitations,
    tx: &mut PgTransaction<'_>,
    caller: &Caller,
    current: &User,
    email: &str,
) -> Result<(), Fault> {
    let (customer, id) = (caller.customer, UserId::from_path(&current.id)?);
    let account = membership::store::account(&mut **tx, customer, id).await?;
    if email.to_lowercase() == current.email.to_lowercase() {
        // Without an account, the present address is that of the invitation.
        return match account {
            Some(_) => invitation::store::delete(tx, customer, id).await,
            None => Ok(()),
        };
    }
    rules::check_may_change_email(caller, current)?;
    if let Some(account) = account
        && membership::store::count(&mut **tx, account).await? > 1
    {
        return Err(rules::shared_email());
    }
    if invitation::store::is_for(&mut **tx, customer, id, email).await? {
        invitation::store::set_requester(tx, customer, id, caller.user).await?;
    } else {
        invitation::store::check_available(&mut **tx, customer, email).await?;
        invitation::store::replace(tx, customer, id, email, Some(caller.user)).await?;
    }
    invitations.send(tx, customer, id, email).await?;
    if account.is_some() {
        Mail::email_change(customer, id).enqueue(tx).await?;
        let entry = Entry::new("EmailChangeRequested").target("User", id);
        audit::record(tx, caller, entry.details(Some(email.to_owned()))).await?;
    }
    Ok(())
}
