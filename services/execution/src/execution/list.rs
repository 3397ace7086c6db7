//! Lists of executions, newest first. A search examines the executions in windows, each with short
//! statements of its own, so that no connection is held while a long history is searched.

use assay_proto::{CustomerId, Fault, ProjectId, TestSetId, execution::ExecutionEntry};
use assay_runtime::list::{Rows, Slice};
use sqlx::{AssertSqlSafe, PgPool};
use uuid::Uuid;

/// Number of executions that one statement examines.
pub(crate) const WINDOW: i64 = 2000;

/// The executions that a list shows: those of a project, or of one of its test sets.
#[derive(Clone, Copy)]
pub(super) struct ListFilter {
    pub(super) customer: CustomerId,
    pub(super) project: ProjectId,
    pub(super) set: Option<TestSetId>,
    /// Archived executions only, active ones only, or all.
    pub(super) archived: Option<bool>,
}

impl ListFilter {
    /// Returns the condition in SQL. Each combination is a statement of its own, so that PostgreSQL
    /// plans it for the index that fits.
    fn condition(&self) -> String {
        let owner = match self.set {
            Some(_) => "project_id = $2 and test_set_id = $3",
            None => "project_id = $2 and $3::uuid is null",
        };
        let archive = archive_condition(self.archived);
        format!("customer_id = $1 and {owner} and {archive} and id < $4")
    }
}

/// Returns the condition for archived rows, active rows or all, in the words of the partial
/// indexes.
fn archive_condition(archived: Option<bool>) -> &'static str {
    match archived {
        Some(true) => "archived",
        Some(false) => "not archived",
        None => "true",
    }
}

/// Lists executions.
pub(super) async fn list(
    db: &PgPool,
    filter: ListFilter,
    slice: &Slice,
) -> Result<Rows<ExecutionEntry>, Fault> {
    let (mut before, mut rest) = (slice.before()?, slice.clone());
    let mut entries = Rows::from(Vec::new());
    loop {
        let window = match slice.pattern {
            Some(_) => end_of_window(db, filter, before).await?,
            None => None,
        };
        let more = between(db, filter, window, before, &rest).await?;
        rest.limit -= i64::try_from(more.items.len()).unwrap_or(i64::MAX);
        entries = entries.and(more);
        match window {
            Some(id) if rest.limit > 0 && !entries.is_cut() => before = id,
            _ => return Ok(entries),
        }
    }
}

/// Returns the last id of the window before an id, unless fewer executions are left.
async fn end_of_window(
    db: &PgPool,
    filter: ListFilter,
    before: Uuid,
) -> Result<Option<Uuid>, Fault> {
    let condition = filter.condition();
    let statement = format!(
        "select id from live_execution where {condition} order by id desc offset $5 limit 1"
    );
    let end = sqlx::query_scalar(AssertSqlSafe(statement))
        .bind(filter.customer)
        .bind(filter.project)
        .bind(filter.set)
        .bind(before)
        .bind(WINDOW - 1);
    Ok(end.fetch_optional(db).await?)
}

/// Lists the executions from the id `from` up to the one before the id `before`.
async fn between(
    db: &PgPool,
    filter: ListFilter,
    from: Option<Uuid>,
    before: Uuid,
    slice: &Slice,
) -> Result<Rows<ExecutionEntry>, Fault> {
    let (columns, condition) = (ExecutionEntry::COLUMNS, filter.condition());
    let statement = format!(
        "select {columns} from live_execution
         where {condition} and id >= $5
           and ($6::text is null or test_set_name ilike $6 or software_name ilike $6
                or software_version ilike $6)
         order by id desc
         limit $7"
    );
    let entries = sqlx::query_as(AssertSqlSafe(statement))
        .bind(filter.customer)
        .bind(filter.project)
        .bind(filter.set)
        .bind(before)
        .bind(from.unwrap_or(Uuid::nil()))
        .bind(&slice.pattern)
        .bind(slice.limit)
        .fetch(db);
    slice.read(entries).await
}
