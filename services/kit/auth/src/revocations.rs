//! Which tokens have died before their time, or have another name by now.

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

/// What a revocation is compared with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bearer {
    pub(crate) customer: CustomerId,
    pub(crate) user: UserId,
    pub(crate) api_token: Option<ApiTokenId>,
    pub(crate) session: Option<SessionId>,
    /// In microseconds since 1970.
    pub(crate) issued_at: i64,
}

/// The ids that a token must have to be revoked: those given.
type Scope = (Option<CustomerId>, Option<UserId>, Option<ApiTokenId>, Option<SessionId>);

/// The latest revocation of each scope, so that there are not more of them than of what can be
/// revoked.
#[derive(Default)]
pub(crate) struct Revocations {
    issued_until: RwLock<HashMap<Scope, i64>>,
    /// The latest name of users, and until when tokens were issued that have an older one.
    names: RwLock<HashMap<UserId, (i64, Arc<str>)>>,
    generation: AtomicU64,
    /// Whether those that identity knows have yet to be read.
    expected: AtomicBool,
    wanted: Notify,
}

impl Revocations {
    /// Until [`Revocations::are_known`], tokens may have been revoked without this knowing.
    pub(crate) fn expect(&self) {
        self.expected.store(true, Ordering::Release);
    }

    pub(crate) fn are_known(&self) {
        self.expected.store(false, Ordering::Release);
    }

    /// Whether it is not known yet which tokens are revoked.
    pub(crate) fn are_expected(&self) -> bool {
        self.expected.load(Ordering::Acquire)
    }

    /// Asks for revocations to be read now.
    pub(crate) fn want(&self) {
        self.wanted.notify_one();
    }

    /// Resolves when revocations should be read.
    pub(crate) async fn wanted(&self) {
        self.wanted.notified().await;
    }

    /// Grows with every revocation. What was no more than that when a token was found alive cannot
    /// have revoked it since.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Takes note of a revocation. One that names no tokens it can be compared with is ignored:
    /// it is none of ours.
    pub(crate) fn learn(&self, revocation: &Revocation) {
        let Some(scope) = scope(revocation) else {
            tracing::warn!(sequence = revocation.sequence, "not a revocation");
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

    /// The name of the bearer, if it has changed since the token was issued.
    pub(crate) fn new_name(&self, bearer: &Bearer) -> Option<Arc<str>> {
        let names = self.names.read().unwrap_or_else(PoisonError::into_inner);
        let (until, name) = names.get(&bearer.user)?;
        (bearer.issued_at <= *until).then(|| name.clone())
    }

    pub(crate) fn revoke(&self, bearer: &Bearer) -> bool {
        let all = self.issued_until.read().unwrap_or_else(PoisonError::into_inner);
        let dies = |scope: Scope| all.get(&scope).is_some_and(|until| bearer.issued_at <= *until);
        [None, Some(bearer.customer)].into_iter().any(|customer| {
            [None, Some(bearer.user)].into_iter().any(|user| {
                dies((customer, user, None, None))
                    || bearer.api_token.is_some_and(|id| dies((customer, user, Some(id), None)))
                    || bearer.session.is_some_and(|id| dies((customer, user, None, Some(id))))
            })
        })
    }

    /// Forgets what can only have revoked tokens that have expired by now.
    pub(crate) fn forget_old(&self) {
        let lifetime = i64::try_from(LONGEST_LIFETIME.as_micros()).unwrap_or(i64::MAX);
        let expired = now_in_micros().saturating_sub(lifetime);
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

/// None for what is no id.
#[expect(clippy::option_option, reason = "an id may be left out, and it may be wrong")]
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

    /// Revocations that match the bearer, and ones that come close.
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
    fn a_token_dies_with_a_revocation_that_matches_it_in_all_ids() {
        let bearer = bearer(now_in_micros());
        for (revocation, dies) in cases(&bearer) {
            let revocations = Revocations::default();
            revocations.learn(&revocation);
            assert_eq!(revocations.revoke(&bearer), dies, "{revocation:?}");
        }
    }

    #[test]
    fn a_token_that_was_issued_later_lives() {
        let before = bearer(now_in_micros());
        for (revocation, dies) in cases(&before) {
            let revocations = Revocations::default();
            revocations.learn(&revocation);
            let at = Bearer { issued_at: revocation.issued_until, ..before };
            assert_eq!(revocations.revoke(&at), dies, "{revocation:?}");
            let after = Bearer { issued_at: revocation.issued_until + 1, ..before };
            assert!(!revocations.revoke(&after), "{revocation:?}");
        }
    }

    #[test]
    fn a_login_is_not_revoked_with_an_api_token() {
        let with_api_token = bearer(now_in_micros());
        let login = Bearer { api_token: None, ..with_api_token };
        let revocations = Revocations::default();
        revocations.learn(&revocation(None, None, with_api_token.api_token));
        assert!(revocations.revoke(&with_api_token));
        assert!(!revocations.revoke(&login));
    }

    #[test]
    fn a_session_ends_without_the_other_sessions_of_its_user() {
        let ended = bearer(now_in_micros());
        let other = Bearer { session: Some(SessionId::new()), ..ended };
        let revocations = Revocations::default();
        let session_id = ended.session.map(|id| id.to_string());
        revocations.learn(&Revocation { session_id, ..revocation(None, Some(ended.user), None) });
        assert!(revocations.revoke(&ended));
        assert!(!revocations.revoke(&other));
    }

    #[test]
    fn a_name_changes_in_older_tokens_and_revokes_none() {
        let older = bearer(100);
        let newer = Bearer { issued_at: 301, ..older };
        let revocations = Revocations::default();
        for (issued_until, name) in [(300, "Grace Hopper"), (200, "Miss Hopper")] {
            let renamed = revocation(None, Some(older.user), None);
            let display_name = Some(name.to_owned());
            revocations.learn(&Revocation { issued_until, display_name, ..renamed });
        }
        assert_eq!(revocations.new_name(&older).as_deref(), Some("Grace Hopper"));
        assert_eq!(revocations.new_name(&newer), None);
        assert!(!revocations.revoke(&older));
    }

    #[test]
    fn revocations_in_any_order_and_twice_are_the_same() {
        let (earlier, later) = (bearer(100), 200);
        let of_user = revocation(None, Some(earlier.user), None);
        let first = Revocation { issued_until: earlier.issued_at, ..of_user.clone() };
        let second = Revocation { issued_until: later, ..of_user };
        let revocations = Revocations::default();
        revocations.learn(&second);
        let generation = revocations.generation();
        revocations.learn(&first);
        revocations.learn(&second);
        assert_eq!(revocations.generation(), generation, "nothing is to be checked again");
        assert!(revocations.revoke(&Bearer { issued_at: later, ..earlier }));
    }

    #[test]
    fn what_is_no_revocation_is_ignored() {
        let revocations = Revocations::default();
        let wrong = Revocation { user_id: Some("*".to_owned()), ..revocation(None, None, None) };
        revocations.learn(&wrong);
        assert!(!revocations.revoke(&bearer(0)));
    }

    #[test]
    fn old_revocations_are_forgotten() {
        let revocations = Revocations::default();
        let (old, new) = (bearer(100), bearer(now_in_micros()));
        let of_old = revocation(None, Some(old.user), None);
        revocations.learn(&Revocation { issued_until: 100, ..of_old });
        revocations.learn(&revocation(None, Some(new.user), None));
        assert!(revocations.revoke(&old));
        revocations.forget_old();
        assert!(!revocations.revoke(&old), "it has expired anyway");
        assert!(revocations.revoke(&new));
    }
}
