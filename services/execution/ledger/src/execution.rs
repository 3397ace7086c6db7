//! Executions: their rows, and the rules that every change of one keeps.

pub mod rules;
pub mod store;
