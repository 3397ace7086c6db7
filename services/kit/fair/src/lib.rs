//! Fairness: no customer delays the others, and background work does not delay requests.
//!
//! [`Shares`] divide a limited number of permits between customers. [`Gather`] lets the work that many
//! callers request at once take one permit together. A [`Notifier`] wakes those that wait for an event of
//! their customer. A [`Turn`] is a permit of work that waits for its client in between. A [`Throttle`]
//! bounds how long background work holds locks.

mod gather;
mod notifier;
mod shares;
mod throttle;
mod turn;

pub use self::{
    gather::{Gather, LARGEST_BATCH},
    notifier::{Notifier, OfCustomer, Waiter},
    shares::{Share, Shares},
    throttle::{Throttle, pause_after, rest},
    turn::Turn,
};
