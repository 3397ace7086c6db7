//! How records are written: what clients send is checked, and an update is applied to what a record
//! says already, in the same way for every noun of every service.

mod change;
mod check;
pub mod elements;

pub use self::{
    change::{Action, Change, difference, input},
    check::{Check, MOST_PROBLEMS, below},
};
