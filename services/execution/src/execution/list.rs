//! Lists of executions, newest first. A search examines the executions in windows, each with short
//! statements of its own, so that no connection is held while a long history is searched.

use assay_proto::{ExecutionStatistic, Fault, execution::ExecutionEntry};
use assay_rpc::list::{Rows, Slice};
use futures::TryStreamExt;
use sqlx::{FromRow, PgPool, QueryBuilder};
use uuid::Uuid;

use super::filter::ListFilter;

/// Number of executions that one statement examines.
pub(crate) const WINDOW: i64 = 2000;

/// A row of a list.
#[derive(FromRow)]
struct Row {
    #[sqlx(flatten)]
    entry: ExecutionEntry,
    #[sqlx(flatten)]
    statistic: ExecutionStatistic,
}

impl Row {
    fn into_entry(self) -> ExecutionEntry {
        ExecutionEntry { statistic: Some(self.statistic), ..self.entry }
    }
}

/// Lists executions.
pub(super) async fn list(
    db: &PgPool,
    filter: &ListFilter,
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
    filter: &ListFilter,
    before: Uuid,
) -> Result<Option<Uuid>, Fault> {
    let mut sql = QueryBuilder::new("select id from live_execution");
    filter.push_to(&mut sql);
    sql.push(" and id < ").push_bind(before);
    sql.push(" order by id desc limit 1 offset ").push_bind(WINDOW - 1);
    Ok(sql.build_query_scalar().fetch_optional(db).await?)
}

/// Lists the executions from the id `from` up to the one before the id `before`.
async fn between(
    db: &PgPool,
    filter: &ListFilter,
    from: Option<Uuid>,
    before: Uuid,
    slice: &Slice,
) -> Result<Rows<ExecutionEntry>, Fault> {
    let (columns, statistic) = (ExecutionEntry::COLUMNS, ExecutionStatistic::COLUMNS);
    let mut sql = QueryBuilder::new(format!("select {columns}, {statistic} from live_execution"));
    filter.push_to(&mut sql);
    sql.push(" and id < ").push_bind(before);
    if let Some(from) = from {
        sql.push(" and id >= ").push_bind(from);
    }
    if let Some(pattern) = &slice.pattern {
        sql.push(
            " and concat_ws(E'\\n', test_set_name, software_name, software_version, branch, commit,
                build, tags) ilike ",
        );
        sql.push_bind(pattern.clone());
    }
    sql.push(" order by id desc limit ").push_bind(slice.limit);
    let rows = sql.build_query_as::<Row>().fetch(db);
    slice.read(rows.map_ok(Row::into_entry)).await
}
