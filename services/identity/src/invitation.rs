//! Invitations: a membership begins, and comes to another mailbox, when the owner of that mailbox
//! accepts.

pub(crate) mod store;

use std::net::IpAddr;

use assay_proto::{AccountId, Fault};
use assay_records::Action;
use sqlx::PgTransaction;

use self::store::Taken;
use crate::{
    account, api_token,
    audit::{self, Actor, Entry},
    membership,
    record::Record,
    revocation::{self, Scope},
};

/// Gives the membership of an invitation that was taken to an account. If another account had it,
/// that one loses it, with all that was proven by it: sessions and API tokens, and the account
/// itself if it has no other membership.
pub(crate) async fn accept(
    tx: &mut PgTransaction<'_>,
    taken: &Taken,
    account: AccountId,
    address: Option<IpAddr>,
) -> Result<(), Fault> {
    let Taken { customer_id: customer, user_id: user, .. } = *taken;
    let before = membership::store::account(&mut **tx, customer, user).await?;
    membership::store::give(tx, customer, user, account).await?;
    let actor = Actor { customer, user, address };
    let action = if before.is_some() { "EmailChanged" } else { "InvitationAccepted" };
    let entry = Entry::new(action).of("User", user).with(Some(taken.email.clone()));
    audit::record(tx, actor, entry).await?;
    if let Some(before) = before {
        api_token::store::delete_all(tx, customer, user).await?;
        account::store::lock(tx, before).await?;
        account::store::delete_if_unused(tx, before).await?;
        publish_change(tx, taken).await?;
        revocation::record(tx, Scope::of_user(user)).await?;
    }
    Ok(())
}

async fn publish_change(tx: &mut PgTransaction<'_>, taken: &Taken) -> Result<(), Fault> {
    let Some(group) = taken.user_group_id else { return Ok(()) };
    let record = Record::User(taken.customer_id, group, taken.user_id);
    record.publish(tx, Action::Changed).await
}
