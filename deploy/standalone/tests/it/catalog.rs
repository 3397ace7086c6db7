//! The catalog over HTTP: the forms of its answers, and the rules that hold for all its records.

mod at_hand;
mod bulk;
mod forms;
mod pages;
mod places;
mod records;
mod tags;
mod updates;
mod versions;
