//! Uploads by tus 1.0: they continue where a connection has broken.

use anyhow::{Context, Result, ensure};
use assay_client::{Answer, Attempts, ClientError};
use assay_digest::repr_digest;
use base64::{Engine, prelude::BASE64_STANDARD};
use reqwest::{
    Body, Method, RequestBuilder,
    header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName, LOCATION},
};
use uuid::Uuid;

use crate::{
    folder::Contents,
    interface::{Interface, is_missing},
    progress::note,
};

/// Number of attempts in a row that bring no byte, after which an upload is given up: over about four minutes. For up to
/// two, a request whose connection has broken holds the upload.
const ATTEMPTS: u32 = 30;

/// Maximum size of a request, in bytes, so that its timeout suffices for slow connections.
const PIECE: u64 = 64 << 20;

const RESUMABLE: HeaderName = HeaderName::from_static("tus-resumable");
const OFFSET: HeaderName = HeaderName::from_static("upload-offset");
const LENGTH: HeaderName = HeaderName::from_static("upload-length");
const METADATA: HeaderName = HeaderName::from_static("upload-metadata");
const FILE_ID: HeaderName = HeaderName::from_static("assay-file-id");
const REPR_DIGEST: HeaderName = HeaderName::from_static("repr-digest");

/// The state of an upload.
struct State {
    /// Number of bytes that are stored.
    offset: u64,
    /// Id of the file that the upload has become.
    file: Option<Uuid>,
}

impl State {
    fn of(answer: &Answer) -> Result<Self> {
        let offset = answer.header(OFFSET).and_then(|offset| offset.parse().ok());
        let file = answer.header(FILE_ID).map(Uuid::parse_str).transpose();
        Ok(Self {
            offset: offset.context("the answer has no valid Upload-Offset")?,
            file: file.context("the answer has no valid Assay-File-Id")?,
        })
    }
}

/// Uploads a file to the project at a path, with its SHA-256: Assay refuses one that has changed since the export was
/// verified. Continues an upload that an earlier import has begun, or calls `remember` with the id of a new one.
/// Returns the id of the file.
pub(super) async fn upload(
    (interface, at): (&Interface, &str),
    (name, media_type): (&str, &str),
    contents: &Contents,
    (earlier, remember): (Option<Uuid>, impl FnOnce(Uuid) -> Result<()>),
) -> Result<Uuid> {
    let uploads = format!("{at}/uploads");
    let earlier = match earlier.map(|id| format!("{uploads}/{id}")) {
        Some(path) => unfinished(interface, &path).await?.map(|state| (path, state)),
        None => None,
    };
    let (path, mut state) = if let Some(begun) = earlier {
        begun
    } else {
        let metadata = metadata(name, media_type);
        let (id, state) = begin(interface, &uploads, &metadata, contents).await?;
        remember(id)?;
        (format!("{uploads}/{id}"), state)
    };
    let (mut attempts, mut has_grown) = (Attempts::new(ATTEMPTS), false);
    loop {
        if let Some(file) = state.file {
            return Ok(file);
        }
        let before = state.offset;
        ensure!(before < contents.bytes, "{path} has {before} bytes, but is not complete");
        state = match interface.send_once(Method::PATCH, &path, piece(contents, before)).await {
            Ok(answer) => {
                let state = State::of(&answer).with_context(|| format!("PATCH {path}"))?;
                ensure!(state.offset > before, "PATCH {path}: the upload does not grow");
                state
            }
            Err(error) => {
                let waited = attempts.wait_after(error, has_grown, |error| {
                    note(format_args!("the upload of {name} broke off; will continue it: {error}"));
                });
                if let Err(failure) = waited.await {
                    delete_if_lost(interface, &path, &failure).await?;
                    return Err(failure).with_context(|| format!("PATCH {path}"));
                }
                head(interface, &path).await?
            }
        };
        has_grown = state.offset > before;
    }
}

/// Begins an upload. One whose answer is lost expires.
async fn begin(
    interface: &Interface,
    uploads: &str,
    metadata: &str,
    contents: &Contents,
) -> Result<(Uuid, State)> {
    let described = |request: RequestBuilder| {
        let request = request.header(RESUMABLE, "1.0.0").header(LENGTH, contents.bytes);
        let request = request.header(REPR_DIGEST, repr_digest(&contents.sha256));
        request.header(METADATA, metadata)
    };
    let begun = interface.send(Method::POST, uploads, described).await?;
    Ok((id_of(&begun)?, State::of(&begun)?))
}

/// Returns the state of an upload that an earlier import has begun; none if it is gone. One that has become a file is
/// of no use: the project does not have the file any more, or it would have been found.
async fn unfinished(interface: &Interface, path: &str) -> Result<Option<State>> {
    match head(interface, path).await {
        Ok(state) => Ok(Some(state).filter(|state| state.file.is_none())),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Deletes an upload that cannot become a file any more, so that the next import begins it again.
async fn delete_if_lost(interface: &Interface, path: &str, failure: &ClientError) -> Result<()> {
    if failure.has_code("upload_part_missing") {
        let build = |request: RequestBuilder| request.header(RESUMABLE, "1.0.0");
        interface.send(Method::DELETE, path, build).await?;
    }
    Ok(())
}

async fn head(interface: &Interface, path: &str) -> Result<State> {
    let build = |request: RequestBuilder| request.header(RESUMABLE, "1.0.0");
    let answer = interface.send(Method::HEAD, path, build).await?;
    State::of(&answer).with_context(|| format!("HEAD {path}"))
}

/// Adds the bytes of a file from a position on to a request.
fn piece(contents: &Contents, from: u64) -> impl FnOnce(RequestBuilder) -> RequestBuilder {
    let to = contents.bytes.min(from.saturating_add(PIECE));
    let chunks = contents.clone().chunks(from..to);
    move |request| {
        let request = request.header(RESUMABLE, "1.0.0").header(OFFSET, from);
        let request = request.header(CONTENT_TYPE, "application/offset+octet-stream");
        request.header(CONTENT_LENGTH, to - from).body(Body::wrap_stream(chunks))
    }
}

/// Returns the id of an upload that has begun.
fn id_of(answer: &Answer) -> Result<Uuid> {
    let path = answer.header(LOCATION).context("the answer has no Location")?;
    let id = path.rsplit('/').next().unwrap_or_default();
    Uuid::parse_str(id).context("the answer has no valid Location")
}

/// Returns the name and the media type of a file as the protocol has them.
fn metadata(name: &str, media_type: &str) -> String {
    let pairs = [("filename", name), ("filetype", media_type)];
    let pairs = pairs.into_iter().filter(|(_, value)| !value.is_empty());
    let pairs = pairs.map(|(key, value)| format!("{key} {}", BASE64_STANDARD.encode(value)));
    pairs.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_have_values_in_base64() {
        let both = "filename UHLDvGZwbGFuLnBkZg==,filetype YXBwbGljYXRpb24vcGRm";
        assert_eq!(metadata("Pr\u{fc}fplan.pdf", "application/pdf"), both);
        assert_eq!(metadata("a", ""), "filename YQ==");
    }
}
