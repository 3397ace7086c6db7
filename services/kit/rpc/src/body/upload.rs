//! Calls that upload a body in several messages.

use assay_proto::{Piece, UploadMessage};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use tonic::{Status, Streaming};

/// Receives the first message of a call that uploads a body. Returns the target of the body, and
/// all of its pieces.
pub async fn open<M: UploadMessage>(
    mut messages: Streaming<M>,
) -> Result<(M::Target, impl Stream<Item = Result<Piece, Status>> + Send), Status> {
    let missing = || Status::invalid_argument("the call has no messages");
    let (target, first) = messages.message().await?.ok_or_else(missing)?.into_parts();
    let rest = messages.map_ok(|message| message.into_parts().1);
    Ok((target.unwrap_or_default(), stream::iter([Ok(first)]).chain(rest)))
}
