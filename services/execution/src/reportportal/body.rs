//! The bodies of requests of agents, as far as they are read before the launch is over.

use assay_formats::parse_lenient;
use assay_ledger::execution::rules::LONGEST_GRACE;
use assay_proto::{
    Fault, LaunchId,
    execution::{LaunchEntryKind, OpenExecutionInput, OpenExecutionRequest},
};
use bytes::Bytes;
use serde::{Deserialize, de::DeserializeOwned};
use uuid::Uuid;

use super::attributes::{Attribute, LONGEST_TAGS, OWN_TAGS, line, of_key, tags};

/// Maximum length of the name of a launch, in characters: that of a test set.
const LONGEST_NAME: usize = 255;

/// Maximum length of a description, in characters.
const LONGEST_DESCRIPTION: usize = 10_000;

/// Keys of the attributes that name a subject and an environment.
const SUBJECT: [&str; 2] = ["version", "build"];
const ENVIRONMENT: [&str; 2] = ["environment", "env"];

/// A launch to start.
pub(super) struct Opening {
    pub(super) launch: LaunchId,
    pub(super) agent: String,
    pub(super) description: String,
    pub(super) rerun: Rerun,
    pub(super) request: OpenExecutionRequest,
}

/// Whether tests of a launch are run again.
pub(super) enum Rerun {
    No,
    Of(LaunchId),
    /// Of the last launch with the same name.
    OfLast,
}

/// Changes of a launch that has started.
#[derive(Default)]
pub(super) struct Changes {
    pub(super) description: Option<String>,
    pub(super) tags: Option<String>,
    pub(super) branch: Option<String>,
    pub(super) commit: Option<String>,
    pub(super) build: Option<String>,
}

/// A request to stage.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) launch: LaunchId,
    pub(super) kind: Kind,
    pub(super) item: Option<Uuid>,
    pub(super) parent: Option<Uuid>,
    pub(super) body: Bytes,
    pub(super) file: Option<Named>,
}

/// The name and the media type of a file.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) content_type: String,
}

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Start,
    Finish,
    Log,
    File,
}

impl Kind {
    /// Returns the name in the database.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Start => "Start",
            Self::Finish => "Finish",
            Self::Log => "Log",
            Self::File => "File",
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LaunchBody {
    name: Option<String>,
    uuid: Option<String>,
    description: Option<String>,
    #[serde(default)]
    attributes: Option<Vec<Attribute>>,
    mode: Option<String>,
    #[serde(default)]
    rerun: Option<bool>,
    rerun_of: Option<String>,
    /// The numbers of launches that are merged.
    #[serde(default)]
    launches: Option<Vec<i64>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EntryBody {
    uuid: Option<String>,
    launch_uuid: Option<String>,
    item_uuid: Option<String>,
}

/// Reads the request that starts a launch.
pub(super) fn opening(project: String, body: &[u8]) -> Result<Opening, Fault> {
    opening_of(project, &parse(body)?)
}

/// Reads the request that merges launches. Returns their numbers, and the launch that replaces them.
pub(super) fn merging(project: String, body: &[u8]) -> Result<(Vec<i64>, Opening), Fault> {
    let mut body: LaunchBody = parse(body)?;
    let numbers = body.launches.take().unwrap_or_default();
    Ok((numbers, opening_of(project, &body)?))
}

fn opening_of(project: String, body: &LaunchBody) -> Result<Opening, Fault> {
    let launch = match &body.uuid {
        Some(id) => LaunchId(uuid("uuid", id)?),
        None => LaunchId::new(),
    };
    let name = line(body.name.as_deref().unwrap_or_default(), LONGEST_NAME);
    if name.is_empty() {
        return Err(Fault::invalid("name", "must not be blank"));
    }
    let attributes = body.attributes.as_deref().unwrap_or_default();
    let origin = |key| of_key(attributes, key).map(|value| line(&value, LONGEST_TAGS));
    let first = |keys: [&str; 2]| keys.into_iter().find_map(|key| of_key(attributes, key));
    let input = OpenExecutionInput {
        project,
        test_set: name,
        key: Some(format!("launch-{launch}")),
        tags: Some(tags(own_tags(body), attributes)),
        branch: origin("branch"),
        commit: origin("commit"),
        build: origin("build"),
        // The launch ends the execution. This is the last resort.
        grace_in_sec: Some(LONGEST_GRACE),
        ..OpenExecutionInput::default()
    };
    let request = OpenExecutionRequest {
        execution: Some(input),
        subject: first(SUBJECT),
        environment: first(ENVIRONMENT),
        ..OpenExecutionRequest::default()
    };
    Ok(Opening {
        launch,
        agent: of_key(attributes, "agent").unwrap_or_default(),
        description: description(body).unwrap_or_default(),
        rerun: rerun(body),
        request,
    })
}

/// Returns the launch whose tests are run again. An agent that chooses the id of its launch reports to
/// that one.
fn rerun(body: &LaunchBody) -> Rerun {
    match &body.rerun_of {
        _ if body.uuid.is_some() => Rerun::No,
        Some(id) => Uuid::try_parse(id).map_or(Rerun::No, |id| Rerun::Of(LaunchId(id))),
        None if body.rerun == Some(true) => Rerun::OfLast,
        None => Rerun::No,
    }
}

/// Reads the changes of a request that updates or finishes a launch. Those that finish one may have no
/// body. `before` has the tags so far, of which those that Assay has added are kept.
pub(super) fn changes(body: &[u8], before: &str) -> Result<Changes, Fault> {
    if body.is_empty() {
        return Ok(Changes::default());
    }
    let body: LaunchBody = parse(body)?;
    let attributes = body.attributes.as_deref().unwrap_or_default();
    let of_user = attributes.iter().any(Attribute::is_of_user);
    let own = before.split(", ").filter(|tag| OWN_TAGS.contains(tag)).collect();
    let origin = |key| of_key(attributes, key).map(|value| line(&value, LONGEST_TAGS));
    Ok(Changes {
        description: description(&body),
        tags: of_user.then(|| tags(own, attributes)),
        branch: origin("branch"),
        commit: origin("commit"),
        build: origin("build"),
    })
}

fn description(body: &LaunchBody) -> Option<String> {
    let text = body.description.as_deref().map(str::trim).filter(|text| !text.is_empty())?;
    Some(text.chars().filter(|c| *c != '\0').take(LONGEST_DESCRIPTION).collect())
}

/// Returns the tags that do not come from attributes.
fn own_tags(body: &LaunchBody) -> Vec<&'static str> {
    let is_rerun = body.rerun == Some(true) || body.rerun_of.is_some();
    let is_debug = body.mode.as_deref().is_some_and(|mode| mode.eq_ignore_ascii_case("DEBUG"));
    let own = OWN_TAGS.into_iter().zip([is_rerun, is_debug]);
    own.filter(|(_, applies)| *applies).map(|(tag, _)| tag).collect()
}

/// Reads a request about an item or a log. Returns it with the id of the item or the log.
pub(super) fn entry(
    kind: LaunchEntryKind,
    item_id: Option<&str>,
    body: Bytes,
) -> Result<(Entry, Uuid), Fault> {
    let EntryBody { uuid: own, launch_uuid, item_uuid } = parse(&body)?;
    let launch = launch_uuid.ok_or_else(|| Fault::invalid("launchUuid", "must be given"))?;
    let launch = LaunchId(uuid("launchUuid", &launch)?);
    let item_id = item_id.map(|id| Uuid::try_parse(id).map_err(|_| Fault::NotFound("item")));
    let item_id = item_id.transpose()?;
    let new = || own.map_or_else(|| Ok(Uuid::now_v7()), |id| uuid("uuid", &id));
    let (kind, item, parent, id) = match kind {
        LaunchEntryKind::Start => {
            let id = new()?;
            (Kind::Start, Some(id), item_id, id)
        }
        LaunchEntryKind::Finish => {
            let id = item_id.ok_or(Fault::NotFound("item"))?;
            (Kind::Finish, Some(id), None, id)
        }
        LaunchEntryKind::Log | LaunchEntryKind::Unspecified => {
            let item = item_uuid.filter(|id| !id.is_empty());
            let item = item.map(|id| uuid("itemUuid", &id)).transpose()?;
            (Kind::Log, item, None, new()?)
        }
    };
    Ok((Entry { launch, kind, item, parent, body, file: None }, id))
}

/// Returns the request that ends a launch, which states its result. Many have no body.
pub(super) fn end(launch: LaunchId, body: &[u8]) -> Option<Entry> {
    let body = Bytes::copy_from_slice(body);
    let (kind, item, parent, file) = (Kind::Finish, None, None, None);
    (!body.is_empty()).then_some(Entry { launch, kind, item, parent, body, file })
}

/// Returns the number of a launch, which JavaScript can represent.
pub(super) fn number(id: LaunchId) -> i64 {
    i64::try_from(id.0.as_u128() & ((1 << 48) - 1)).unwrap_or_default()
}

fn uuid(field: &'static str, text: &str) -> Result<Uuid, Fault> {
    Uuid::try_parse(text.trim()).map_err(|_| Fault::invalid(field, "must be a UUID"))
}

/// Parses a body as tolerantly as it is read when the launch is over.
fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Fault> {
    parse_lenient(body).map_err(|error| Fault::Malformed(format!("the body is not valid: {error}")))
}

#[cfg(test)]
mod tests;
