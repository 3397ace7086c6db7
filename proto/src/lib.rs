//! The contracts of Assay as Rust types: messages, gRPC clients and servers, the permission each
//! method needs, and how a call fails.
//!
//! One message serves as row, gRPC message, JSON body and OpenAPI schema. `build/` has the rules.

mod batch;
mod blank;
mod cell;
mod changes;
mod codec;
#[cfg(feature = "sql")]
mod columns;
mod duration;
mod fault;
mod file_range;
mod id;
mod integer;
mod object;
mod policy;
#[cfg(feature = "sql")]
mod rendered;
mod reply;
mod result;
mod timestamp;
mod unknown_field;
mod upload;
mod value;

pub use self::{
    batch::{Batch, Listed, RowOf},
    cell::is_formula,
    changes::Changes,
    codec::Codec,
    duration::LONGEST_DURATION,
    fault::{Fault, LARGEST_HEADERS, Violation},
    id::*,
    integer::{Integer, integer, integers, optional_integer},
    object::optional_object,
    policy::{Needs, Permissions, Reading, issues, method_at, streams, waits},
    reply::Replies,
    result::worst,
    timestamp::Timestamp,
    unknown_field::{nearest, unknown_field},
    upload::{Piece, UploadMessage},
    value::*,
};
#[cfg(feature = "sql")]
pub use self::{
    columns::{InputArrays, InputColumns, InputQuery},
    fault::{OnConstraint, is_transient},
    rendered::{Columned, JsonRow, Rendered},
};

tonic::include_proto!("assay");

/// Declares a module for each package of the contracts.
macro_rules! packages {
    ($($(#[$doc:meta])* $package:ident $proto:literal),* $(,)?) => {$(
        $(#[$doc])*
        pub mod $package {
            pub mod v1 {
                tonic::include_proto!($proto);
            }
            pub use v1::*;
        }
    )*};
}

packages! {
    /// Customers, users and their tokens.
    identity "assay.identity.v1",
    /// Projects, test cases, plans and sets, subjects and environments.
    catalog "assay.catalog.v1",
    /// Executions, reports and results.
    execution "assay.execution.v1",
    /// Notifications.
    notification "assay.notification.v1",
    /// Events that services publish.
    events "assay.events.v1",
}

include!(concat!(env!("OUT_DIR"), "/policy.rs"));
include!(concat!(env!("OUT_DIR"), "/examples.rs"));
include!(concat!(env!("OUT_DIR"), "/accepted.rs"));
include!(concat!(env!("OUT_DIR"), "/changes.rs"));
include!(concat!(env!("OUT_DIR"), "/batches.rs"));
include!(concat!(env!("OUT_DIR"), "/uploads.rs"));
include!(concat!(env!("OUT_DIR"), "/columns.rs"));

/// The contracts as a `FileDescriptorSet`, for gRPC reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
