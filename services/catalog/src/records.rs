//! The statements that test cases, test sets, subjects and environments have in common.

use std::marker::PhantomData;

use assay_fair::Gather;
use assay_proto::{
    CustomerId, Fault, Listed, ProjectId, UserId,
    catalog::{ListFilter, RecordKind},
};
use assay_records::Criterion;
use assay_rpc::list::{Rows, Slice};
use sqlx::{
    AssertSqlSafe, Encode, FromRow, PgExecutor, PgPool, PgTransaction, Postgres, Type,
    postgres::{PgHasArrayType, PgRow},
};

use crate::{filter, project::store as projects};

/// A record that belongs to a project. Its table has the columns `customer_id`, `project_id`, `id`,
/// `archived`, `deleted_at` and `live`.
pub(crate) trait ProjectRecord: for<'r> FromRow<'r, PgRow> + Send + Unpin {
    type Id: for<'q> Encode<'q, Postgres> + Type<Postgres> + PgHasArrayType + Copy + Send + Sync;
    /// The record as lists show it, as a message only if the service changes it.
    type Entry: Listed + for<'r> FromRow<'r, PgRow> + Unpin;

    /// The kind that favorites and openings are of.
    const KIND: RecordKind = RecordKind::Unspecified;
    const TABLE: &'static str;
    const NOUN: &'static str;
    /// The condition that records fulfil which contain the text `$4`.
    const SEARCH: &'static str;

    /// The columns of the whole record.
    const COLUMNS_OF_RECORD: Columns;
    /// The columns of a record that is read to be changed.
    const COLUMNS_TO_CHANGE: Columns = Self::COLUMNS_OF_RECORD;
    /// The columns of an entry.
    const COLUMNS_OF_ENTRY: Columns;
}

/// Columns of a `select`: those that are generated, and those that the store computes.
pub(crate) type Columns = &'static [&'static str];

/// A customer, and a project of it or for permanent URLs all of them.
pub(crate) type Scope = (CustomerId, Option<ProjectId>);

/// Reads of single records, of which those in one scope are gathered.
pub(crate) type Reads<R> = Gather<Scope, <R as ProjectRecord>::Id, R>;

/// A record that was found for the id at this position, from 1 on.
#[derive(FromRow)]
struct Found<T> {
    position: i64,
    #[sqlx(flatten)]
    record: T,
}

/// Appends fillers up to the number of elements for which PostgreSQL plans a statement with arrays.
/// With fewer elements it makes a new plan for each execution, which takes longer than to execute it.
pub(crate) fn padded<T: Clone>(mut elements: Vec<T>, filler: T) -> Vec<T> {
    elements.resize(elements.len().max(10), filler);
    elements
}

/// Returns these columns of the record with each id.
pub(crate) async fn get_all<R: ProjectRecord>(
    db: &PgPool,
    (customer, project): Scope,
    ids: &[R::Id],
    columns: Columns,
) -> Result<Vec<Result<R, Fault>>, Fault> {
    let (columns, table) = (columns.join(", "), R::TABLE);
    // Subqueries without joins, so that every plan looks up one record after the other.
    let found = sqlx::query_as(AssertSqlSafe(format!(
        "select position, record.*
         from unnest($3::uuid[]) with ordinality as wanted (wanted_id, position)
         cross join lateral (
             select {columns} from {table}
             where customer_id = $1 and id = wanted_id and deleted_at is null
               and ($2::uuid is null or project_id = $2)
               and (
                   select deleted_at is null from project
                   where project.customer_id = $1 and project.id = {table}.project_id
               )
             limit 1
         ) record"
    )));
    let wanted = padded(ids.iter().copied().map(Some).collect(), None);
    let found: Vec<Found<R>> =
        found.bind(customer).bind(project).bind(wanted).fetch_all(db).await?;
    let mut records: Vec<_> = ids.iter().map(|_| Err(Fault::NotFound(R::NOUN))).collect();
    for Found { position, record } in found {
        let index = usize::try_from(position - 1).map_err(Fault::internal)?;
        records[index] = Ok(record);
    }
    Ok(records)
}

/// The records of one kind in one project of one customer.
pub(crate) struct Records<R> {
    customer: CustomerId,
    project: ProjectId,
    kind: PhantomData<fn() -> R>,
}

impl<R: ProjectRecord> Records<R> {
    pub(crate) fn of(customer: CustomerId, project: ProjectId) -> Self {
        Self { customer, project, kind: PhantomData }
    }

    pub(crate) async fn get(&self, db: impl PgExecutor<'_>, id: R::Id) -> Result<R, Fault> {
        let (columns, table) = (R::COLUMNS_OF_RECORD.join(", "), R::TABLE);
        let live = projects::is_live("$2");
        let record = sqlx::query_as(AssertSqlSafe(format!(
            "select {columns} from {table}
             where customer_id = $1 and project_id = $2 and id = $3 and deleted_at is null
               and {live}"
        )));
        let record = record.bind(self.customer).bind(self.project).bind(id);
        record.fetch_optional(db).await?.ok_or(Fault::NotFound(R::NOUN))
    }

    /// Returns the record that a permanent URL refers to, in any project of the customer.
    pub(crate) async fn get_in_any_project(
        db: impl PgExecutor<'_>,
        customer: CustomerId,
        id: R::Id,
    ) -> Result<R, Fault> {
        let (columns, table) = (R::COLUMNS_OF_RECORD.join(", "), R::TABLE);
        let live = projects::is_live("project_id");
        let record = sqlx::query_as(AssertSqlSafe(format!(
            "select {columns} from {table}
             where customer_id = $1 and id = $2 and deleted_at is null and {live}"
        )));
        let record = record.bind(customer).bind(id).fetch_optional(db).await?;
        record.ok_or(Fault::NotFound(R::NOUN))
    }

    /// Fails if the project has no such record.
    pub(crate) async fn find(&self, db: impl PgExecutor<'_>, id: R::Id) -> Result<(), Fault> {
        let table = R::TABLE;
        let live = projects::is_live("$2");
        let found = sqlx::query(AssertSqlSafe(format!(
            "select from {table}
             where customer_id = $1 and project_id = $2 and id = $3 and deleted_at is null
               and {live}"
        )));
        let found = found.bind(self.customer).bind(self.project).bind(id);
        found.fetch_optional(db).await?.map(drop).ok_or(Fault::NotFound(R::NOUN))
    }

    /// Returns a record and locks it against changes, after its project is locked against deletion.
    pub(crate) async fn lock(&self, tx: &mut PgTransaction<'_>, id: R::Id) -> Result<R, Fault> {
        projects::lock_shared(tx, self.customer, self.project).await?;
        let (columns, table) = (R::COLUMNS_TO_CHANGE.join(", "), R::TABLE);
        let record = sqlx::query_as(AssertSqlSafe(format!(
            "select {columns} from {table}
             where customer_id = $1 and project_id = $2 and id = $3 and deleted_at is null
             for no key update"
        )));
        let record = record.bind(self.customer).bind(self.project).bind(id);
        record.fetch_optional(&mut **tx).await?.ok_or(Fault::NotFound(R::NOUN))
    }

    /// Locks the record that `field` refers to, if any, against deletion. Fails if the project has no
    /// such record.
    pub(crate) async fn lock_referenced(
        &self,
        tx: &mut PgTransaction<'_>,
        field: &'static str,
        id: Option<R::Id>,
    ) -> Result<(), Fault> {
        let Some(id) = id else { return Ok(()) };
        let (table, noun) = (R::TABLE, R::NOUN);
        let found = sqlx::query(AssertSqlSafe(format!(
            "select from {table}
             where customer_id = $1 and project_id = $2 and id = $3 and deleted_at is null
             for key share"
        )));
        let found = found.bind(self.customer).bind(self.project).bind(id);
        let found = found.fetch_optional(&mut **tx).await?;
        let missing = || Fault::invalid(field, format!("no such {noun} in this project"));
        found.map(drop).ok_or_else(missing)
    }

    /// Lists a slice of the records that meet all criteria, newest first unless the filter has an order of its own. Fails if
    /// the project does not exist, which is checked only if the list is empty.
    pub(crate) async fn list(
        &self,
        db: &PgPool,
        user: UserId,
        filter: ListFilter,
        criteria: &[Criterion],
        slice: &Slice,
    ) -> Result<Rows<R::Entry>, Fault> {
        let (columns, table) = (R::COLUMNS_OF_ENTRY.join(", "), R::TABLE);
        let search = if slice.pattern.is_some() { R::SEARCH } else { "true" };
        let limit = slice.limit_or("$5");
        let mut condition = filter::condition(filter, R::KIND);
        for (criterion, number) in criteria.iter().zip(7..) {
            condition = format!("{condition} and {}", criterion.with(&format!("${number}")));
        }
        let order = filter::order(filter, R::KIND);
        let live = projects::is_live("$6");
        // PostgreSQL does not know the value of the subquery when it plans. So it does not expect a plan
        // for each cursor to be better than one for all, and plan for longer than it reads.
        let entries = sqlx::query_as(AssertSqlSafe(format!(
            "select {columns} from {table}
             where customer_id = $1 and project_id = $6 and id < (select $3::uuid) and {condition}
               and {live} and ({search})
             order by {order}
             limit {limit}"
        )));
        let entries = entries
            .bind(self.customer)
            .bind(user)
            .bind(filter::before(filter, slice)?)
            .bind(&slice.pattern)
            .bind(filter::limit(filter, slice))
            .bind(self.project);
        let entries = criteria.iter().fold(entries, |entries, one| entries.bind(&one.value));
        // With a connection, each row passes through one stream less than with the pool.
        let mut connection = db.acquire().await?;
        let entries = filter::read(filter, entries.fetch(&mut *connection), slice).await?;
        drop(connection);
        if entries.items.is_empty() {
            projects::find(db, self.customer, self.project).await?;
        }
        Ok(entries)
    }

    /// Marks a record as deleted.
    pub(crate) async fn mark_deleted(
        &self,
        tx: &mut PgTransaction<'_>,
        id: R::Id,
    ) -> Result<(), Fault> {
        let table = R::TABLE;
        let marked = sqlx::query(AssertSqlSafe(format!(
            "update {table} set deleted_at = now()
             where customer_id = $1 and project_id = $2 and id = $3 and deleted_at is null"
        )));
        let marked = marked.bind(self.customer).bind(self.project).bind(id);
        if marked.execute(&mut **tx).await?.rows_affected() == 0 {
            return Err(Fault::NotFound(R::NOUN));
        }
        Ok(())
    }
}
