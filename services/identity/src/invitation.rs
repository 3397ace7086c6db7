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

/// Assigns the membership of a consumed invitation to an account. If it had another account, its
/// sessions and API tokens are revoked, and that account is deleted if it has no other membership.
pub(crate) async fn accept(
    tx: &mut PgTransaction<'_>,
    invitation: &AcceptedInvitation,
    account: AccountId,
    address: Option<IpAddr>,
) -> Result<(), Fault> {
    let AcceptedInvitation { customer_id: customer, user_id: user, .. } = *invitation;
    let before = membership::store::account(&mut **tx, customer, user).await?;
    membership::store::transfer(tx, customer, user, account).await?;
    let actor = Actor { customer, user, address };
    let action = if before.is_some() { "EmailChanged" } else { "InvitationAccepted" };
    let entry = Entry::new(action).target("User", user).details(Some(invitation.email.clone()));
    audit::record(tx, actor, entry).await?;
    if let Some(before) = before {
        api_token::store::delete_all(tx, customer, user).await?;
        account::store::lock(tx, before).await?;
        account::store::delete_if_unused(tx, before).await?;
        publish_change(tx, invitation).await?;
        revocation::record(tx, Scope::of_user(user)).await?;
    }
    Ok(())
}

async fn publish_change(
    tx: &mut PgTransaction<'_>,
    invitation: &AcceptedInvitation,
) -> Result<(), Fault> {
    let Some(group) = invitation.user_group_id else { return Ok(()) };
    let record = Record::User(invitation.customer_id, group, invitation.user_id);
    record.publish(tx, Action::Changed).await
}
