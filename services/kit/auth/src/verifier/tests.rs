use assay_proto::{CustomerId, UserId};

use super::*;

/// Returns a valid token with a text of this size, in bytes.
fn token(size: usize) -> Verified {
    let (customer, user) = (CustomerId::new(), UserId::new());
    let caller = Caller {
        customer,
        user,
        name: "Ada".into(),
        permissions: Permissions::default(),
        api_token: None,
        session: None,
        address: None,
        authorization: "x".repeat(size).parse().unwrap(),
    };
    let bearer = Bearer { customer, user, api_token: None, session: None, issued_at: 0 };
    let checked = AtomicU64::new(0);
    Verified { caller, bearer, expiry: u64::MAX, checked, is_for_streams: false }
}

#[test]
fn the_memory_of_verified_tokens_is_bounded() {
    let verifier = Verifier::without_keys();
    let cache = &verifier.0.verified;
    for number in 0..20_000 {
        cache.insert(hash(&number.to_string()), Arc::new(token(LONGEST)));
    }
    cache.run_pending_tasks();
    let count = cache.entry_count();
    assert!((1_000..10_000).contains(&count), "{count} of the longest tokens are kept");
}
