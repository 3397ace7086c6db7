//! Users with tokens, for tests of a single service.

use std::time::Duration;

use assay_auth::{Caller, Grant, Issuer, SigningKey, Verifier};
use assay_proto::{ApiTokenId, CustomerId, Permissions, UserId};

/// A key that signs tokens of tests.
pub struct TestKeys(Issuer);

/// A user of a test.
#[derive(Clone)]
pub struct TestUser {
    pub customer: CustomerId,
    pub user: UserId,
    pub token: String,
    pub caller: Caller,
}

impl TestKeys {
    pub fn generate() -> Self {
        assay_runtime::install_crypto();
        let key = SigningKey::generate().expect("a key");
        Self(Issuer::new(&key, Duration::from_hours(1)).expect("an issuer"))
    }

    /// Returns a verifier of these tokens.
    pub fn verifier(&self) -> Verifier {
        Verifier::of_keys(&self.0.jwks().expect("keys")).expect("a verifier")
    }

    /// Creates a user of a new customer with these permissions, such as `"Read, Write"`.
    pub async fn user(&self, permissions: &str) -> TestUser {
        self.user_of(CustomerId::new(), permissions).await
    }

    /// Creates a user of that customer with these permissions.
    pub async fn user_of(&self, customer: CustomerId, permissions: &str) -> TestUser {
        let permissions = Permissions::parse("permissions", permissions).expect("permissions");
        self.sign(Grant::new(customer, UserId::new(), "Ada Lovelace", permissions)).await
    }

    /// Returns a user who authenticates with an API token.
    pub async fn with_api_token(&self, user: &TestUser) -> TestUser {
        let Caller { customer, user, permissions, .. } = user.caller;
        let grant = Grant::new(customer, user, "Ada Lovelace", permissions);
        self.sign(Grant { api_token: Some(ApiTokenId::new()), ..grant }).await
    }

    async fn sign(&self, grant: Grant<'_>) -> TestUser {
        let (customer, user) = (grant.customer, grant.user);
        let token = self.0.issue(grant).expect("a token");
        let caller = self.verifier().verify(&token).await.expect("a caller");
        TestUser { customer, user, token, caller }
    }
}

impl TestUser {
    /// Returns a gRPC request of this user.
    pub fn call<T>(&self, message: T) -> tonic::Request<T> {
        self.caller.call(message)
    }
}
