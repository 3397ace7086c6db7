//! The only file of a form, which is streamed like a body of its own.

use axum::{body::Body, extract::Request};
use bytes::Bytes;
use futures::stream;
use http::{HeaderMap, header::CONTENT_TYPE};
use multer::{Field, Multipart, parse_boundary};

use super::file_name;
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
    let body = bounded(&parts.headers, body, Bounds::FILE)?;
    let mut form = Multipart::new(body.into_data_stream(), boundary);
    while let Some(field) = form.next_field().await.map_err(|error| body_error(&error))? {
        if file_name(field.headers()).is_some() {
            let media_type = field.content_type().map(ToString::to_string).unwrap_or_default();
            let chunks = stream::try_unfold((Some(field), form), async |(field, form)| {
                next_chunk(field, form).await
            });
            return Ok((media_type, Body::from_stream(chunks)));
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
type Rest = (Option<Field<'static>>, Multipart<'static>);

/// Returns the next chunk of the file, or none after the last one if the form has no other file.
async fn next_chunk(
    field: Option<Field<'static>>,
    mut form: Multipart<'static>,
) -> Result<Option<(Bytes, Rest)>, Failure> {
    if let Some(mut field) = field
        && let Some(chunk) = field.chunk().await?
    {
        return Ok(Some((chunk, (Some(field), form))));
    }
    while let Some(field) = form.next_field().await? {
        if file_name(field.headers()).is_some() {
            return Err(SeveralFiles.into());
        }
    }
    Ok(None)
}
