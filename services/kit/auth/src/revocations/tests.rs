use tokio::time::advance;

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
    assert!(revocations.revoked.read().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn revocations_of_api_tokens_are_kept_until_their_tokens_have_expired() {
    let bearer = bearer(now_in_micros());
    let revocations = Revocations::default();
    revocations.add(&revocation(Some(bearer.customer), Some(bearer.user), bearer.api_token));
    revocations.add(&revocation(None, Some(UserId::new()), None));
    advance(LONGEST_EXCHANGED_LIFETIME).await;
    revocations.remove_expired(0);
    assert!(revocations.is_revoked(&bearer));
    advance(Duration::from_hours(1)).await;
    revocations.remove_expired(0);
    assert!(!revocations.is_revoked(&bearer), "its tokens have expired");
    assert_eq!(revocations.revoked.read().unwrap().len(), 1, "tokens of users live longer");
}
