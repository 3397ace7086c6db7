//! Deliveries: notifications that are sent to webhooks, and retried until the receiver accepts them.
//!
//! A delivery is written in the transaction of its notification, so none is lost. Deliveries are sent
//! in rounds: a round sends some of the due deliveries of one webhook, for as long as some of them
//! succeed. At any time, a webhook has at most one round, on whichever replica. A slow receiver
//! therefore delays only its own deliveries, and a receiver that is down gets few requests.

mod backoff;
mod client;
mod outcome;
mod rounds;
pub(crate) mod sender;
pub(crate) mod store;
