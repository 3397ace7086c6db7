//! Tests of the contracts. They are a program of their own, so that the large generated code is compiled once.

// Generated code names what it needs as parts of its crate.
use assay_proto::*;

#[cfg(feature = "sql")]
mod columns;
mod fault;
mod policy;
mod reply;
mod result;
mod shapes;
mod unknown_field;
