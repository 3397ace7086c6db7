//! Who is calling, and what they may do: tokens, their verification at every program, the guard in
//! front of every gRPC method, and secrets at rest.

mod caller;
mod guard;
mod seal;
mod token;
mod verifier;

pub use self::{
    caller::{Caller, anonymous},
    guard::guard,
    seal::{Seal, SealConfig, new_seal_key},
    token::{Issuer, SigningKey},
    verifier::Verifier,
};
