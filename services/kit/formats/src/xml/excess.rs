//! Reasons why a document is refused, and its limits.

use std::fmt;

use assay_proto::Fault;

/// Maximum size of an element with its attributes, without their excess. Refuses hostile files.
pub(super) const ELEMENT: usize = 1 << 20;

/// Maximum size of a document type or an entity, in bytes. Refuses hostile files. Instructions lose
/// what exceeds it.
pub(super) const DECLARATION: usize = 4 << 10;

/// Reason why a document is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Excess {
    Entities,
    Declarations,
    Element,
    Reference,
}

impl From<Excess> for Fault {
    fn from(excess: Excess) -> Self {
        let is_doctype = matches!(excess, Excess::Entities | Excess::Declarations);
        let code = if is_doctype { "doctype_refused" } else { "too_large" };
        Self::Refused { code, reason: excess.to_string() }
    }
}

impl std::error::Error for Excess {}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entities => {
                write!(f, "the XML contains a document type with entities: remove it")
            }
            Self::Declarations => write!(
                f,
                "the XML contains a document type of more than {DECLARATION} bytes: remove it"
            ),
            Self::Element => write!(f, "the XML has an element with more than {ELEMENT} bytes"),
            Self::Reference => {
                write!(f, "the XML has an entity with more than {DECLARATION} bytes")
            }
        }
    }
}
