//! The customer that a request is charged to before its token is verified.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    mem::take,
    net::IpAddr,
    sync::{Mutex, MutexGuard, PoisonError},
};

use assay_proto::CustomerId;
use uuid::Uuid;

/// Number of customers that requests without a known token count as. Those of one address count as
/// the same one, so that they occupy a small part of what all such requests may.
const ANONYMOUS: u64 = 16;

/// Number of tokens in one generation, of which there are two.
const TOKENS: usize = 20_000;

/// The customers of tokens that were verified before.
///
/// Only verified tokens get here: a forged one cannot occupy what its alleged customer may.
#[derive(Default)]
pub(super) struct Callers {
    hasher: RandomState,
    known: Mutex<Generations>,
}

/// The hash of a token. It cannot be predicted, so nobody can forge a token with the hash of
/// another.
pub(super) type TokenHash = u64;

/// The tokens in use. When the young generation is full, it replaces the old one.
#[derive(Default)]
struct Generations {
    young: HashMap<TokenHash, CustomerId>,
    old: HashMap<TokenHash, CustomerId>,
}

/// The customer that a request counts for.
#[derive(Clone, Copy)]
pub(super) struct Caller {
    pub(super) token: Option<TokenHash>,
    pub(super) customer: CustomerId,
    /// Whether it is the customer of the token.
    pub(super) is_known: bool,
}

impl Callers {
    fn hash(&self, token: &str) -> TokenHash {
        self.hasher.hash_one(token)
    }

    /// Finds the customer that a request from an address with a token counts for.
    pub(super) fn identify(&self, address: Option<IpAddr>, token: Option<&str>) -> Caller {
        let token = token.map(|token| self.hash(token));
        let known = token.and_then(|token| self.customer(token));
        let customer = known.unwrap_or_else(|| self.anonymous(address));
        Caller { token, customer, is_known: known.is_some() }
    }

    /// Returns the customer of a token, if the token was valid when it was last verified.
    fn customer(&self, token: TokenHash) -> Option<CustomerId> {
        let mut known = self.known();
        if let Some(customer) = known.young.get(&token) {
            return Some(*customer);
        }
        let customer = known.old.remove(&token)?;
        known.add(token, customer);
        Some(customer)
    }

    /// Returns the customer that stands for requests of an address without a known token. No
    /// customer has its id, which is not a version 7 UUID.
    fn anonymous(&self, address: Option<IpAddr>) -> CustomerId {
        CustomerId(Uuid::from_u128(u128::from(self.hasher.hash_one(address) % ANONYMOUS)))
    }

    pub(super) fn learn(&self, token: TokenHash, customer: CustomerId) {
        self.known().add(token, customer);
    }

    pub(super) fn forget(&self, token: TokenHash) {
        let mut known = self.known();
        known.young.remove(&token);
        known.old.remove(&token);
    }

    fn known(&self) -> MutexGuard<'_, Generations> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Generations {
    fn add(&mut self, token: TokenHash, customer: CustomerId) {
        if self.young.len() >= TOKENS {
            self.old = take(&mut self.young);
        }
        self.young.insert(token, customer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_in_use_stay_known_and_others_are_forgotten() {
        let (callers, customer) = (Callers::default(), CustomerId::new());
        let (used, unused) = (callers.hash("used"), callers.hash("unused"));
        callers.learn(used, customer);
        callers.learn(unused, customer);
        for number in 0..3 * TOKENS {
            callers.learn(callers.hash(&number.to_string()), CustomerId::new());
            assert_eq!(callers.customer(used), Some(customer));
        }
        assert_eq!(callers.customer(unused), None);
        let known = callers.known();
        assert!(known.young.len() + known.old.len() <= 2 * TOKENS);
    }

    #[test]
    fn a_token_that_is_not_valid_any_more_is_forgotten() {
        let (callers, token) = (Callers::default(), 7);
        callers.learn(token, CustomerId::new());
        callers.forget(token);
        assert_eq!(callers.customer(token), None);
    }

    #[test]
    fn requests_of_an_address_without_a_known_token_count_as_one_customer() {
        let callers = Callers::default();
        let address = |host: u8| Some(IpAddr::from([192, 0, 2, host]));
        assert_eq!(callers.anonymous(address(1)), callers.anonymous(address(1)));
        let all = (0..=255).map(|host| callers.anonymous(address(host)));
        let distinct = all.collect::<std::collections::HashSet<_>>().len();
        assert!((2..=16).contains(&distinct), "{distinct}");
    }
}
