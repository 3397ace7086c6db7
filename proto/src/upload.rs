//! Calls that upload a body in several messages.

use prost::bytes::Bytes;

use crate::execution::FormFile;

/// A piece of a body as it was sent.
#[derive(Debug, Default)]
pub struct Piece {
    pub chunk: Bytes,
    /// The file of a form that starts with it.
    pub file: Option<FormFile>,
    /// Whether the body is complete with it.
    pub last: bool,
}

/// A message of a call that uploads a body: a piece of it, and in the first message its target.
pub trait UploadMessage: Send + 'static {
    type Target: Default;

    /// Takes the message apart.
    fn into_parts(self) -> (Option<Self::Target>, Piece);
}
