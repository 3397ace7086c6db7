//! Lists of executions, newest first. Where a filter may match only a few of many, they are examined
//! in windows, each by short statements of its own: no connection is held while all history is
//! looked through.

use assay_proto::{CustomerId, Fault, ProjectId, TestSetId, execution::ExecutionEntry};
use assay_runtime::list::{Rows, Slice};
use sqlx::{AssertSqlSafe, PgPool};
use uuid::Uuid;

use super::store::select;

/// How many executions one statement examines.
pub(crate) const WINDOW: i64 = 2000;

/// Executions of a project, or of one of its sets.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    pub(super) customer: CustomerId,
    pub(super) project: ProjectId,
    pub(super) set: Option<TestSetId>,
    /// Those in the archive, those that are not, or all.
    pub(super) archived: Option<bool>,
}

impl Wanted {
    /// A condition for each, so that each is planned for its index.
    fn condition(&self) -> String {
        let owner = match self.set {
            Some(_) => "project_id = $2 and test_set_id = $3",
            None => "project_id = $2 and $3::uuid is null",
        };
        let place = match self.archived {
            Some(true) => "and archived",
            Some(false) => "and not archived",
            None => "",
        };
        format!("customer_id = $1 and {owner} {place} and id < $4")
    }
}

/// Lists executions.
pub(super) async fn list(
    db: &PgPool,
    wanted: Wanted,
    slice: &Slice,
) -> Result<Rows<ExecutionEntry>, Fault> {
    let (mut before, mut rest) = (slice.before()?, slice.clone());
    let mut entries = Rows::from(Vec::new());
    loop {
        let window = match slice.pattern {
            Some(_) => end_of_window(db, wanted, before).await?,
            None => None,
        };
        let some = between(db, wanted, window, before, &rest).await?;
        rest.limit -= i64::try_from(some.items.len()).unwrap_or(i64::MAX);
        entries = entries.and(some);
        match window {
            Some(id) if rest.limit > 0 && !entries.is_cut() => before = id,
            _ => return Ok(entries),
        }
    }
}

/// The last id of the window before an id, if there are so many executions.
async fn end_of_window(db: &PgPool, wanted: Wanted, before: Uuid) -> Result<Option<Uuid>, Fault> {
    let condition = wanted.condition();
    let statement = format!(
        "select id from live_execution where {condition} order by id desc offset $5 limit 1"
    );
    let end = sqlx::query_scalar(AssertSqlSafe(statement))
        .bind(wanted.customer)
        .bind(wanted.project)
        .bind(wanted.set)
        .bind(before)
        .bind(WINDOW - 1);
    Ok(end.fetch_optional(db).await?)
}

/// Executions from one id on, before another one.
async fn between(
    db: &PgPool,
    wanted: Wanted,
    from: Option<Uuid>,
    before: Uuid,
    slice: &Slice,
) -> Result<Rows<ExecutionEntry>, Fault> {
    let condition = wanted.condition();
    let statement = format!(
        "where {condition} and id >= $5
           and ($6::text is null or test_set_name ilike $6 or software_name ilike $6
                or software_version ilike $6)
         order by id desc
         limit $7"
    );
    let entries = select(&statement)
        .bind(wanted.customer)
        .bind(wanted.project)
        .bind(wanted.set)
        .bind(before)
        .bind(from.unwrap_or(Uuid::nil()))
        .bind(&slice.pattern)
        .bind(slice.limit)
        .fetch(db);
    slice.read(entries).await
}
