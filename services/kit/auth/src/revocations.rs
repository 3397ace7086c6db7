//! Revoked tokens, and tokens with an outdated display name.

use std::{
    collections::HashMap,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use assay_proto::{ApiTokenId, CustomerId, SessionId, UserId, identity::Revocation};
use tokio::{sync::Notify, time::Instant};
use uuid::Uuid;

use crate::token::{LONGEST_EXCHANGED_LIFETIME, LONGEST_LIFETIME, now_in_micros};

/// Time after its receipt for which the revocation of an API token is kept: until all tokens that come from it have
/// expired. One hour allows for clock skew.
const KEPT_OF_API_TOKEN: Duration =
    LONGEST_EXCHANGED_LIFETIME.saturating_add(Duration::from_hours(1));

/// Properties of a token that a revocation is compared with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bearer {
    pub(crate) customer: CustomerId,
    pub(crate) user: UserId,
    pub(crate) api_token: Option<ApiTokenId>,
    pub(crate) session: Option<SessionId>,
    /// In microseconds since 1970.
    pub(crate) issued_at: i64,
}

/// Ids that a revoked token must have; absent ones match any token.
type Scope = (Option<CustomerId>, Option<UserId>, Option<ApiTokenId>, Option<SessionId>);

/// A revocation of a scope.
struct Revoked {
    /// Time of issue until which tokens are revoked.
    issued_until: i64,
    received_at: Instant,
}

/// The latest revocation of each scope. Their number is bounded by that of customers, users and sessions, and of API
/// tokens that were deleted within about an hour.
#[derive(Default)]
pub(crate) struct Revocations {
    revoked: RwLock<HashMap<Scope, Revoked>>,
    /// Latest display name of users, and the time of issue until which tokens have an older one.
    names: RwLock<HashMap<UserId, (i64, Arc<str>)>>,
    generation: AtomicU64,
    /// Whether the revocations of the identity service have not been read yet.
    incomplete: AtomicBool,
    read_requested: Notify,
}

impl Revocations {
    /// Marks the revocations as incomplete until [`Revocations::mark_complete`].
    pub(crate) fn mark_incomplete(&self) {
        self.incomplete.store(true, Ordering::Release);
    }

    /// Marks the revocations as read.
    pub(crate) fn mark_complete(&self) {
        self.incomplete.store(false, Ordering::Release);
    }

    /// Returns whether unknown revocations may exist because none have been read yet.
    pub(crate) fn are_incomplete(&self) -> bool {
        self.incomplete.load(Ordering::Acquire)
    }

    /// Requests an immediate read of revocations.
    pub(crate) fn request_read(&self) {
        self.read_requested.notify_one();
    }

    /// Resolves when an immediate read was requested.
    pub(crate) async fn read_requested(&self) {
        self.read_requested.notified().await;
    }

    /// Returns a number that grows with every revocation. While it is unchanged, a token that was
    /// found valid has not been revoked.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Adds a revocation. A malformed one is logged and ignored.
    pub(crate) fn add(&self, revocation: &Revocation) {
        let Some(scope) = scope(revocation) else {
            tracing::warn!(sequence = revocation.sequence, "ignoring a malformed revocation");
            return;
        };
        if let (_, Some(user), ..) = scope
            && let Some(name) = &revocation.display_name
        {
            return self.rename(user, revocation.issued_until, name);
        }
        let issued_until = revocation.issued_until;
        let mut all = self.revoked.write().unwrap_or_else(PoisonError::into_inner);
        if all.get(&scope).is_none_or(|known| known.issued_until < issued_until) {
            all.insert(scope, Revoked { issued_until, received_at: Instant::now() });
            self.generation.fetch_add(1, Ordering::AcqRel);
        }
    }

    fn rename(&self, user: UserId, issued_until: i64, name: &str) {
        let mut names = self.names.write().unwrap_or_else(PoisonError::into_inner);
        if names.get(&user).is_none_or(|(until, _)| *until < issued_until) {
            names.insert(user, (issued_until, name.into()));
            self.generation.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Returns the display name of the user, if it has changed since the token was issued.
    pub(crate) fn new_name(&self, bearer: &Bearer) -> Option<Arc<str>> {
        let names = self.names.read().unwrap_or_else(PoisonError::into_inner);
        let (until, name) = names.get(&bearer.user)?;
        (bearer.issued_at <= *until).then(|| name.clone())
    }

    /// Returns whether a token is revoked.
    pub(crate) fn is_revoked(&self, bearer: &Bearer) -> bool {
        let all = self.revoked.read().unwrap_or_else(PoisonError::into_inner);
        let is_revoked = |scope: Scope| {
            all.get(&scope).is_some_and(|revoked| bearer.issued_at <= revoked.issued_until)
        };
        [None, Some(bearer.customer)].into_iter().any(|customer| {
            [None, Some(bearer.user)].into_iter().any(|user| {
                let is_revoked =
                    |api_token, session| is_revoked((customer, user, api_token, session));
                is_revoked(None, None)
                    || bearer.api_token.is_some_and(|id| is_revoked(Some(id), None))
                    || bearer.session.is_some_and(|id| is_revoked(None, Some(id)))
            })
        })
    }

    /// Removes revocations of tokens that have all expired: those that were issued until this time, in microseconds
    /// since 1970, those that are older than any token may become, and those of API tokens that were received long ago.
    pub(crate) fn remove_expired(&self, expired_until: i64) {
        let lifetime = i64::try_from(LONGEST_LIFETIME.as_micros()).unwrap_or(i64::MAX);
        let expired = now_in_micros().saturating_sub(lifetime).max(expired_until);
        let mut all = self.revoked.write().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(_, _, api_token, _), revoked| {
            let may_matter =
                api_token.is_none() || revoked.received_at.elapsed() < KEPT_OF_API_TOKEN;
            may_matter && revoked.issued_until > expired
        });
        let mut names = self.names.write().unwrap_or_else(PoisonError::into_inner);
        names.retain(|_, (until, _)| *until > expired);
    }
}

fn scope(revocation: &Revocation) -> Option<Scope> {
    Some((
        id(revocation.customer_id.as_deref())?.map(CustomerId),
        id(revocation.user_id.as_deref())?.map(UserId),
        id(revocation.api_token_id.as_deref())?.map(ApiTokenId),
        id(revocation.session_id.as_deref())?.map(SessionId),
    ))
}

/// Parses an optional id; returns `None` if it is malformed.
#[expect(clippy::option_option, reason = "an id can be absent, and it can be malformed")]
fn id(text: Option<&str>) -> Option<Option<Uuid>> {
    text.map(|text| text.parse().ok()).map_or(Some(None), |id| id.map(Some))
}

#[cfg(test)]
mod tests;
