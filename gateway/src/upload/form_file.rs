//! The only file of a form, which is streamed like a body of its own.

use axum::{body::Body, extract::Request};
use bytes::Bytes;
use futures::stream;
use http::{HeaderMap, header::CONTENT_TYPE};
use multer::{Field, Multipart, parse_boundary};

use super::{Held, file_name};
use crate::{
    body::{Bounds, SeveralFiles, body_error, bounded},
    problem::Problem,
};

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Returns the media type of the file that a form has, and its contents. Fails if the form has none. The
/// contents fail at their end if the form has another one.
pub(super) async fn form_file(request: Request) -> Result<(String, Body), Problem> {
    let (parts, body) = request.into_parts();
    let boundary = boundary(&parts.headers)?;
    let held = Held::default();
    let body = held.limit(bounded(&parts.headers, body, Bounds::FILE)?);
    let mut form = Multipart::new(body.into_data_stream(), boundary);
    while let Some(mut field) = form.next_field().await.map_err(|error| body_error(&error))? {
        held.release();
        if file_name(field.headers()).is_some() {
            let media_type = field.content_type().map(ToString::to_string).unwrap_or_default();
            let chunks = stream::try_unfold((Some(field), form, held), next_chunk);
            return Ok((media_type, Body::from_stream(chunks)));
        }
        while field.chunk().await.map_err(|error| body_error(&error))?.is_some() {
            held.release();
        }
    }
    Err(Problem::invalid("file", "is required: the form has no file"))
}

fn boundary(headers: &HeaderMap) -> Result<String, Problem> {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let boundary = content_type.and_then(|value| parse_boundary(value).ok());
    boundary.ok_or_else(|| Problem::malformed("Content-Type: the form needs a boundary"))
}

/// The rest of a file, unless it was read, and the form that has it.
type Rest = (Option<Field<'static>>, Multipart<'static>, Held);

/// Returns the next chunk of the file, or none after the last one if the form has no other file.
async fn next_chunk((field, mut form, held): Rest) -> Result<Option<(Bytes, Rest)>, Failure> {
    if let Some(mut field) = field
        && let Some(chunk) = field.chunk().await?
    {
        held.release();
        return Ok(Some((chunk, (Some(field), form, held))));
    }
    while let Some(mut field) = form.next_field().await? {
        held.release();
        if file_name(field.headers()).is_some() {
            return Err(SeveralFiles.into());
        }
        while field.chunk().await?.is_some() {
            held.release();
        }
    }
    Ok(None)
}
