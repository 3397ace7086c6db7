//! Revoked tokens, and tokens with an outdated display name.

use std::{
    collections::HashMap,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use assay_proto::{ApiTokenId, CustomerId, SessionId, UserId, identity::Revocation};
use tokio::sync::Notify;
use uuid::Uuid;

use crate::token::{LONGEST_LIFETIME, now_in_micros};

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

/// The latest revocation of each scope. Their number is bounded by that of customers, users, API
/// tokens and sessions.
#[derive(Default)]
pub(crate) struct Revocations {
    issued_until: RwLock<HashMap<Scope, i64>>,
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
        let mut all = self.issued_until.write().unwrap_or_else(PoisonError::into_inner);
        let until = all.entry(scope).or_insert(i64::MIN);
        if *until < revocation.issued_until {
            *until = revocation.issued_until;
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
        let all = self.issued_until.read().unwrap_or_else(PoisonError::into_inner);
        let is_revoked =
            |scope: Scope| all.get(&scope).is_some_and(|until| bearer.issued_at <= *until);
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
    /// since 1970, and those that are older than any token may become.
    pub(crate) fn remove_expired(&self, expired_until: i64) {
        let lifetime = i64::try_from(LONGEST_LIFETIME.as_micros()).unwrap_or(i64::MAX);
        let expired = now_in_micros().saturating_sub(lifetime).max(expired_until);
        let mut all = self.issued_until.write().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, until| *until > expired);
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
mod tests {
    use super::*;

    fn bearer(issued_at: i64) -> Bearer {
        let (customer, user) = (CustomerId::new(), UserId::new());
        let (api_token, session) = (Some(ApiTokenId::new()), Some(SessionId::new()));
        Bearer { customer, user, api_token, session, issued_at }
    }

    fn revocation(
        customer: Option<CustomerId>,
        user: Option<UserId>,
        api_token: Option<ApiTokenId>,
    ) -> Revocation {
        Revocation {
            sequence: 1,
            customer_id: customer.map(|id| id.to_string()),
            user_id: user.map(|id| id.to_string()),
            api_token_id: api_token.map(|id| id.to_string()),
            issued_until: now_in_micros(),
            session_id: None,
            display_name: None,
        }
    }

    /// Returns revocations, and whether they revoke the token.
    fn cases(bearer: &Bearer) -> [(Revocation, bool); 11] {
        let (customer, user, token) = (Some(bearer.customer), Some(bearer.user), bearer.api_token);
        let other = (Some(CustomerId::new()), Some(UserId::new()), Some(ApiTokenId::new()));
        [
            (revocation(None, None, None), true),
            (revocation(customer, None, None), true),
            (revocation(customer, user, None), true),
            (revocation(None, user, None), true),
            (revocation(None, None, token), true),
            (revocation(customer, user, token), true),
            (revocation(other.0, None, None), false),
            (revocation(other.0, user, None), false),
            (revocation(customer, other.1, None), false),
            (revocation(None, other.1, None), false),
            (revocation(customer, user, other.2), false),
        ]
    }

    #[test]
    fn a_revocation_revokes_tokens_that_match_all_its_ids() {
        let bearer = bearer(now_in_micros());
        for (revocation, is_revoked) in cases(&bearer) {
            let revocations = Revocations::default();
            revocations.add(&revocation);
            assert_eq!(revocations.is_revoked(&bearer), is_revoked, "{revocation:?}");
        }
    }

    #[test]
    fn a_token_that_was_issued_after_a_revocation_is_valid() {
        let before = bearer(now_in_micros());
        for (revocation, is_revoked) in cases(&before) {
            let revocations = Revocations::default();
            revocations.add(&revocation);
            let at = Bearer { issued_at: revocation.issued_until, ..before };
            assert_eq!(revocations.is_revoked(&at), is_revoked, "{revocation:?}");
            let after = Bearer { issued_at: revocation.issued_until + 1, ..before };
            assert!(!revocations.is_revoked(&after), "{revocation:?}");
        }
    }

    #[test]
    fn revoking_an_api_token_keeps_logins_valid() {
        let with_api_token = bearer(now_in_micros());
        let login = Bearer { api_token: None, ..with_api_token };
        let revocations = Revocations::default();
        revocations.add(&revocation(None, None, with_api_token.api_token));
        assert!(revocations.is_revoked(&with_api_token));
        assert!(!revocations.is_revoked(&login));
    }

    #[test]
    fn ending_a_session_keeps_other_sessions_of_the_user_valid() {
        let ended = bearer(now_in_micros());
        let other = Bearer { session: Some(SessionId::new()), ..ended };
        let revocations = Revocations::default();
        let session_id = ended.session.map(|id| id.to_string());
        revocations.add(&Revocation { session_id, ..revocation(None, Some(ended.user), None) });
        assert!(revocations.is_revoked(&ended));
        assert!(!revocations.is_revoked(&other));
    }

    #[test]
    fn a_new_display_name_applies_to_older_tokens_and_revokes_none() {
        let older = bearer(100);
        let newer = Bearer { issued_at: 301, ..older };
        let revocations = Revocations::default();
        for (issued_until, name) in [(300, "Grace Hopper"), (200, "Miss Hopper")] {
            let renamed = revocation(None, Some(older.user), None);
            let display_name = Some(name.to_owned());
            revocations.add(&Revocation { issued_until, display_name, ..renamed });
        }
        assert_eq!(revocations.new_name(&older).as_deref(), Some("Grace Hopper"));
        assert_eq!(revocations.new_name(&newer), None);
        assert!(!revocations.is_revoked(&older));
    }

    #[test]
    fn revocations_can_be_added_in_any_order_and_repeatedly() {
        let (earlier, later) = (bearer(100), 200);
        let of_user = revocation(None, Some(earlier.user), None);
        let first = Revocation { issued_until: earlier.issued_at, ..of_user.clone() };
        let second = Revocation { issued_until: later, ..of_user };
        let revocations = Revocations::default();
        revocations.add(&second);
        let generation = revocations.generation();
        revocations.add(&first);
        revocations.add(&second);
        assert_eq!(revocations.generation(), generation, "no token must be checked again");
        assert!(revocations.is_revoked(&Bearer { issued_at: later, ..earlier }));
    }

    #[test]
    fn malformed_revocations_are_ignored() {
        let revocations = Revocations::default();
        let wrong = Revocation { user_id: Some("*".to_owned()), ..revocation(None, None, None) };
        revocations.add(&wrong);
        assert!(!revocations.is_revoked(&bearer(0)));
    }

    #[test]
    fn expired_revocations_are_removed() {
        let revocations = Revocations::default();
        let (old, new) = (bearer(100), bearer(now_in_micros()));
        let of_old = revocation(None, Some(old.user), None);
        revocations.add(&Revocation { issued_until: 100, ..of_old });
        revocations.add(&revocation(None, Some(new.user), None));
        assert!(revocations.is_revoked(&old));
        revocations.remove_expired(0);
        assert!(!revocations.is_revoked(&old), "its tokens have expired");
        assert!(revocations.is_revoked(&new));
        revocations.remove_expired(now_in_micros() + 1);
        assert!(!revocations.is_revoked(&new), "tokens have a shorter lifetime");
        assert!(revocations.issued_until.read().unwrap().is_empty());
    }
}
