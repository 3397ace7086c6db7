//! Files of results, which become artifacts that their instances link.

use assay_database::begin;
use assay_ledger::instance::steps::{self, StoredStep, Writer};
use assay_proto::{CustomerId, ExecutionId, Fault};
use assay_rpc::body::Body;
use tonic::Status;

use super::{
    RunService, attempts,
    body::AttemptOf,
    number::{Kind, Numbered},
    store::{self, Record},
};
use crate::{
    artifact::staged::{self, NewFile},
    result::attachments::{name_of, safe_content_type},
};

/// Reads the file of a form.
pub(super) fn read(body: Body, result: i64) -> Result<NewFile, Fault> {
    let missing = || Fault::invalid("attachment", "must be a file");
    let file = body.files.into_iter().next().ok_or_else(missing)?;
    let contents = file.parts().collect::<Vec<_>>().concat();
    // Results can have files with the same name.
    let name = name_of(&file.name, &[&result.to_le_bytes()[..], &contents].concat());
    let guessed = || mime_guess::from_path(&file.name).first_raw().unwrap_or_default();
    let content_type = match file.content_type.as_str() {
        "" | "application/octet-stream" => guessed(),
        media_type => media_type,
    };
    let content_type = safe_content_type(content_type).to_owned();
    Ok(NewFile { name, content_type, contents: contents.into() })
}

impl RunService {
    /// Stores a file, and links it from the instance of a result. Returns the number of the file.
    pub(super) async fn attach(
        &self,
        customer: CustomerId,
        result: &Numbered,
        file: NewFile,
    ) -> Result<i64, Status> {
        let execution = ExecutionId(result.scope_id);
        let attempt: AttemptOf = serde_json::from_str(&result.details).map_err(Fault::internal)?;
        let record =
            Record { scope: execution.0, key: file.name.clone(), details: result.details.clone() };
        let artifacts = &self.results.artifacts;
        let staged = artifacts.receive(customer, execution, vec![file]).await?;
        let writer = self.results.limits.write(customer, execution.0).await?;
        let mut tx = begin(&self.db).await?;
        attempts::lock_execution(&mut tx, customer, execution).await?;
        staged::insert(&mut tx, customer, execution, &staged).await?;
        let stored = attempts::steps(&mut tx, customer, &attempt).await?;
        if let Some(steps) = linking(&stored, &record.key)? {
            attempts::replace_steps(&mut tx, customer, &attempt, &steps).await?;
        }
        let numbered = store::assign(&mut tx, customer, Kind::Attachment, &[record], false).await?;
        tx.commit().await.map_err(Fault::from)?;
        drop(writer);
        let missing = || Fault::internal("an attachment has no number");
        Ok(numbered.first().ok_or_else(missing)?.number)
    }
}

/// Returns stored steps whose last one also links a file, unless one of them does.
fn linking(stored: &[u8], name: &str) -> Result<Option<Vec<u8>>, Fault> {
    let mut steps = steps::read::<StoredStep>(stored)?;
    if steps.iter().any(|step| step.screenshots.iter().any(|link| link == name)) {
        return Ok(None);
    }
    let Some(last) = steps.last_mut() else { return Err(Fault::NotFound("result")) };
    last.screenshots.push(name.to_owned());
    let reason = "the result has too many attachments".to_owned();
    let too_many = Fault::Refused { code: "too_many_attachments", reason };
    Writer::new()?.write(&steps)?.ok_or(too_many).map(Some)
}
