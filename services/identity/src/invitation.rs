//! Invitations. A membership gets its account, or another one, when the owner of the invited
//! mailbox accepts.

pub(crate) mod store;

use std::{net::IpAddr, time::Duration};

use assay_proto::{AccountId, CustomerId, Fault, UserId};
use assay_records::Action;
use sqlx::PgTransaction;

use self::store::AcceptedInvitation;
use crate::{
    account, api_token,
    audit::{self, Actor, Entry},
    config::LoginConfig,
    mail::Mail,
    membership,
    record::Record,
    revocation::{self, Scope},
    throttle::{self, Limit, Subject},
    user_group,
};

/// Time after which a customer may invite another mailbox, beyond the burst.
const OF_CUSTOMER: Duration = Duration::from_secs(10);

/// Limits of invitations of one mailbox, by one customer and by all. Anyone may own the mailbox.
const OF_MAILBOX: Limit = Limit { burst: 10, every: Duration::from_mins(5) };
const OF_MAILBOX_BY_ALL: Limit = Limit { burst: 30, every: Duration::from_mins(5) };

/// Limits of the mails that customers make Assay send to strangers.
#[derive(Clone, Copy)]
pub(crate) struct Invitations {
    of_customer: Limit,
}

impl Invitations {
    pub(crate) fn new(config: &LoginConfig) -> Self {
        Self { of_customer: Limit { burst: config.invitations_per_customer, every: OF_CUSTOMER } }
    }

    /// Queues the mail with an invitation of a user. Fails if the customer has invited many
    /// mailboxes, or this mailbox often.
    pub(crate) async fn send(
        self,
        tx: &mut PgTransaction<'_>,
        customer: CustomerId,
        user: UserId,
        email: &str,
    ) -> Result<(), Fault> {
        let many = "the customer has sent too many invitations";
        let often = "this email address has been invited too often";
        let purpose = format!("invitation by {customer}");
        for (subject, limit, reason) in [
            (Subject::of_customer("invitation", customer), self.of_customer, many),
            (Subject::of_email(&purpose, email), OF_MAILBOX, often),
            (Subject::of_email("invitation", email), OF_MAILBOX_BY_ALL, often),
        ] {
            let counted = throttle::count(&mut **tx, &subject, limit).await;
            counted.map_err(throttle::because(reason))?;
        }
        Mail::invitation(customer, user).enqueue(tx).await
    }
}

/// Consumes the invitation of a user, and locks the membership. Of several concurrent calls, one succeeds.
///
/// A change of address gives the user's permissions to the owner of the new mailbox, days after it was requested. So it
/// is accepted only if its requester may request it now.
pub(crate) async fn consume(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    user: UserId,
) -> Result<Option<AcceptedInvitation>, Fault> {
    let Some(invitation) = store::consume(tx, customer, user).await? else { return Ok(None) };
    let is_valid = !invitation.is_change || may_be_requested(tx, &invitation).await?;
    Ok(is_valid.then_some(invitation))
}

/// Returns whether the requester of a change of address manages the users of the customer, and has all permissions that
/// the user has.
async fn may_be_requested(
    tx: &mut PgTransaction<'_>,
    invitation: &AcceptedInvitation,
) -> Result<bool, Fault> {
    let Some(requester) = invitation.requested_by else { return Ok(false) };
    let requester = membership::store::of_user(&mut **tx, requester).await?;
    let requester = requester.map(|owned| owned.membership);
    let Some(requester) = requester.filter(|one| one.may_manage_users(invitation.customer_id))
    else {
        return Ok(false);
    };
    let Some(granted) = &invitation.usage_permission else { return Ok(true) };
    let granted = user_group::permissions(granted)?;
    Ok(granted.both(requester.permissions()?) == granted)
}

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
