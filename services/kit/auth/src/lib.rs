//! Authentication and authorization: tokens and their verification, the guard in front of gRPC
//! services, encryption of secrets at rest, and signatures.

pub mod actor;
mod api_token;
mod caller;
mod guard;
mod keys;
mod latest;
mod revocations;
mod seal;
mod secret;
mod sign;
mod token;
mod verifier;
mod watch;

pub use self::{
    api_token::API_TOKEN_PREFIX,
    caller::{Caller, UnconfirmedCaller, anonymous, anonymous_from, client_address, customer_of},
    guard::guard,
    seal::{Seal, SealConfig, new_seal_key},
    secret::{hash_of_secret, new_secret},
    sign::Signer,
    token::{Grant, Issuer, LONGEST_EXCHANGED_LIFETIME, LONGEST_LIFETIME, Session, SigningKey},
    verifier::Verifier,
    watch::REVOCATIONS,
};
