//! Forms with logs and their files, streamed to the execution service.

use std::time::Duration;

use assay_auth::Caller;
use assay_proto::execution::{AddLaunchLogsRequest, FormFile};
use axum::extract::{Request, multipart::Field};

use crate::{
    body::Bounds,
    problem::Problem,
    services::Launches,
    upload::{Chunk, UPLOAD_TIMEOUT, Upload, file_name},
};

/// Agents in Python send batches of up to 64 MB.
const BOUNDS: Bounds = Bounds { size: 68 << 20, pause: Duration::from_secs(20) };

/// Stores the logs of a form, and returns their ids.
pub(super) async fn add_logs(
    mut launches: Launches,
    caller: &Caller,
    request: Request,
) -> Result<Vec<String>, Problem> {
    let form = Upload::form_of(request, BOUNDS, part).await?;
    let next = |Chunk { bytes, file, last }| AddLaunchLogsRequest { chunk: bytes, file, last };
    let first = AddLaunchLogsRequest::default();
    let added = form.send(first, next, async |messages| {
        launches.add_launch_logs(caller.call_within(UPLOAD_TIMEOUT, messages)).await
    });
    Ok(added.await?.into_inner().ids)
}

/// Returns a field as a file: those with a file name are attachments, and the other has the logs.
fn part(field: &Field<'_>) -> Option<FormFile> {
    let name = file_name(field.headers());
    Some(FormFile {
        is_attachment: name.is_some(),
        name: name.or_else(|| field.name().map(str::to_owned))?,
        content_type: field.content_type().unwrap_or_default().to_owned(),
    })
}
