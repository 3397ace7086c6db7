//! Results and their attachments, streamed to the execution service.

use assay_proto::execution::{
    AddRunAttachmentRequest, AddRunAttachmentTarget, AddRunResultsRequest, AddRunResultsTarget,
    AddedRunResult, FormFile,
};
use axum::extract::{FromRequest, Request, multipart::Field};
use serde_json::{Value, json};

use super::{Session, number};
use crate::{
    body::Bounds,
    problem::Problem,
    services::Runs,
    upload::{Chunk, UPLOAD_TIMEOUT, Upload, file_name},
};

impl Session {
    /// Adds results, and returns them in their order.
    pub(super) async fn add_results(&self, run: i64, request: Request) -> Result<Value, Problem> {
        let added = self.store(AddRunResultsTarget { run, test_case: None }, request).await?;
        Ok(added.into_iter().map(|result| of_result(run, &result)).collect())
    }

    /// Adds a result of a test case.
    pub(super) async fn add_result(
        &self,
        run: i64,
        case: i64,
        request: Request,
    ) -> Result<Value, Problem> {
        let target = AddRunResultsTarget { run, test_case: Some(case) };
        let added = self.store(target, request).await?;
        added.first().map(|result| of_result(run, result)).ok_or_else(Problem::internal)
    }

    async fn store(
        &self,
        target: AddRunResultsTarget,
        request: Request,
    ) -> Result<Vec<AddedRunResult>, Problem> {
        let upload = Upload::from_request(request, &()).await?;
        let first = AddRunResultsRequest { target: Some(target), ..Default::default() };
        let next =
            |Chunk { bytes, last, .. }| AddRunResultsRequest { target: None, chunk: bytes, last };
        let mut runs: Runs = self.client();
        let added = upload.send(first, next, async |messages| {
            runs.add_run_results(self.caller.call_within(UPLOAD_TIMEOUT, messages)).await
        });
        Ok(added.await?.into_inner().results)
    }

    /// Adds the file of a form to a result.
    pub(super) async fn add_attachment(
        &self,
        result: i64,
        request: Request,
    ) -> Result<Value, Problem> {
        let form = Upload::form_of(request, Bounds::UPLOAD, part).await?;
        let target = Some(AddRunAttachmentTarget { result });
        let first = AddRunAttachmentRequest { target, ..Default::default() };
        let next = |Chunk { bytes, file, last }| AddRunAttachmentRequest {
            target: None,
            chunk: bytes,
            file,
            last,
        };
        let mut runs: Runs = self.client();
        let added = form.send(first, next, async |messages| {
            runs.add_run_attachment(self.caller.call_within(UPLOAD_TIMEOUT, messages)).await
        });
        Ok(json!({ "attachment_id": added.await?.into_inner().number }))
    }
}

/// Returns a field as a file, if it is one.
fn part(field: &Field<'_>) -> Option<FormFile> {
    Some(FormFile {
        name: file_name(field.headers())?,
        is_attachment: true,
        content_type: field.content_type().unwrap_or_default().to_owned(),
    })
}

fn of_result(run: i64, result: &AddedRunResult) -> Value {
    let &AddedRunResult { number, test_case, status } = result;
    let test = number::test(run, test_case);
    json!({ "id": number, "test_id": test, "case_id": test_case, "status_id": status })
}
