//! Writing records: validation of what clients send, and updates of stored records, the same for
//! all records of all services.

pub mod appliances;
pub mod branch;
mod change;
mod check;
mod classification;
pub mod elements;
mod month;
mod nearest;

pub use self::{
    change::{Action, Change, difference, input},
    check::{Check, MOST_PROBLEMS, below},
    classification::{Criterion, criteria},
    month::Month,
    nearest::{in_any_case, misspelt, nearest},
};
