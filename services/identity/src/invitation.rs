//! Invitations. A membership gets its account, or another one, when the owner of the invited
//! mailbox accepts.

pub(crate) mod store;

use std::net::IpAddr;

use assay_proto::{AccountId, Fault};
use assay_records::Action;
use sqlx::PgTransaction;

use self::store::AcceptedInvitation;
use crate::{
    account, api_token,
    audit::{self, Actor, Entry},
    membership,
    record::Record,
    revocation::{self, Scope},
};

/// The account that a membership had before.
pub(crate) type Previous = Option<AccountId>;

/// Assigns the membership of a consumed invitation to an account. If it had another account, that
/// account is deleted if it has no other membership. [`revoke_previous`] must follow.
#[must_use = "the tokens of the previous account must be revoked"]
pub(crate) async fn accept(
    tx: &mut PgTransaction<'_>,
    invitation: &AcceptedInvitation,
    account: AccountId,
    address: Option<IpAddr>,
) -> Result<Previous, Fault> {
    let AcceptedInvitation { customer_id: customer, user_id: user, .. } = *invitation;
    let before = membership::store::account(&mut **tx, customer, user).await?;
    membership::store::transfer(tx, customer, user, account).await?;
    let actor = Actor { customer, user, address };
    let action = if before.is_some() { "EmailChanged" } else { "InvitationAccepted" };
    let entry = Entry::new(action).target("User", user).details(Some(invitation.email.clone()));
    audit::record(tx, actor, entry).await?;
    if let Some(before) = before {
        account::store::lock(tx, before).await?;
        account::store::delete_if_unused(tx, before).await?;
        publish_change(tx, invitation).await?;
    }
    Ok(before)
}

/// Revokes the sessions and API tokens that the previous account of an accepted invitation has at
/// the customer. Like [`revocation::record`], it must come last in a transaction.
pub(crate) async fn revoke_previous(
    tx: &mut PgTransaction<'_>,
    invitation: &AcceptedInvitation,
    previous: Previous,
) -> Result<(), Fault> {
    if previous.is_none() {
        return Ok(());
    }
    let AcceptedInvitation { customer_id: customer, user_id: user, .. } = *invitation;
    revocation::record(tx, Scope::of_user(user)).await?;
    api_token::store::delete_all(tx, customer, user).await
}

async fn publish_change(
    tx: &mut PgTransaction<'_>,
    invitation: &AcceptedInvitation,
) -> Result<(), Fault> {
    let Some(group) = invitation.user_group_id else { return Ok(()) };
    let record = Record::User(invitation.customer_id, group, invitation.user_id);
    record.publish(tx, Action::Changed).await
}
