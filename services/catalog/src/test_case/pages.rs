//! Pages of the active test cases of a project, of which several are read by one statement.

use assay_proto::{
    Batch as _, CustomerId, Fault, Listed as _, Page, ProjectId, Rendered,
    catalog::{TestCaseBatch, TestCaseEntry},
};
use assay_rpc::list::{Slice, USUAL_PAGE};
use futures::TryStreamExt as _;
use sqlx::{AssertSqlSafe, FromRow, PgConnection, PgPool};

use crate::{project::store as projects, records::padded};

/// Number of pages that are read first, when their size is not known.
const FIRST: usize = 4;

/// Maximum number of bytes of all pages, with few more for what is around them.
const MOST: usize = 1 << 20;

/// Returns the rows of a page, and the one after it, which shows that there is a next page.
pub(super) fn slice(Page { limit, cursor, q }: Page) -> Result<Slice, Fault> {
    let limit = limit.filter(|limit| (1..=USUAL_PAGE).contains(limit));
    let Some(limit) = limit else {
        return Err(Fault::invalid("limit", format!("must be 1 to {USUAL_PAGE}")));
    };
    if q.is_some() {
        return Err(Fault::invalid("q", "must be absent"));
    }
    let slice = Slice { after: cursor, limit: i64::from(limit) + 1, pattern: None };
    slice.before()?;
    Ok(slice)
}

/// Reads pages. Returns `None` for those from the first on that would exceed the maximum size. Fails
/// if the project does not exist, which is checked only if a page is empty.
pub(super) async fn read(
    db: &PgPool,
    customer: CustomerId,
    project: ProjectId,
    slices: &[Slice],
) -> Result<Vec<Option<TestCaseBatch>>, Fault> {
    let mut connection = db.acquire().await?;
    let (mut pages, mut size, mut count) = (Vec::with_capacity(slices.len()), 0, FIRST);
    while pages.len() < slices.len() {
        let rest = &slices[pages.len()..];
        let part = &rest[..rest.len().min(count)];
        let read = read_part(&mut connection, customer, project, part, MOST - size).await?;
        let is_cut = read.len() < part.len();
        for (slice, rows) in part.iter().zip(read) {
            let page = page(slice, rows)?;
            size += page.items.len();
            pages.push(Some(page));
        }
        if is_cut || size >= MOST {
            break;
        }
        count = ((MOST - size) * pages.len() / size.max(1)).max(1);
    }
    drop(connection);
    if pages.iter().flatten().any(|page| page.items.is_empty()) {
        projects::find(db, customer, project).await?;
    }
    pages.resize(slices.len(), None);
    Ok(pages)
}

#[derive(FromRow)]
struct Row {
    #[sqlx(flatten)]
    entry: Rendered<TestCaseEntry>,
    /// Position of the page, from 1 on.
    position: i64,
}

/// Reads the rows of pages, one page after the other, until they have so many bytes. The page that
/// exceeds them and later ones are left out.
async fn read_part(
    connection: &mut PgConnection,
    customer: CustomerId,
    project: ProjectId,
    slices: &[Slice],
    most: usize,
) -> Result<Vec<Vec<Rendered<TestCaseEntry>>>, Fault> {
    let columns = TestCaseEntry::COLUMNS;
    let live = projects::is_live("$2");
    // A lateral subquery with a limit is carried out for one page after the other.
    let rows = sqlx::query_as(AssertSqlSafe(format!(
        "select entry.*, position
         from unnest($3::uuid[], $4::bigint[]) with ordinality as page (before, rows, position)
         cross join lateral (
             select {columns} from test_case
             where customer_id = $1 and project_id = $2 and live and id < before and {live}
             order by id desc
             limit rows
         ) as entry"
    )));
    let before = slices.iter().map(Slice::before).collect::<Result<Vec<_>, _>>()?;
    let before = padded(before.into_iter().map(Some).collect(), None);
    let limits: Vec<_> = slices.iter().map(|slice| slice.limit).collect();
    let rows = rows.bind(customer).bind(project).bind(before).bind(limits);
    let mut rows = rows.fetch(connection);

    let mut pages: Vec<Vec<_>> = slices.iter().map(|_| Vec::new()).collect();
    let (mut index, mut size) = (0, 0);
    while let Some(Row { entry, position }) = rows.try_next().await? {
        if size <= most {
            index = usize::try_from(position - 1).map_err(Fault::internal)?;
            size += entry.size();
            pages[index].push(entry);
        }
    }
    if size > most {
        pages.truncate(index);
    }
    Ok(pages)
}

fn page(slice: &Slice, mut rows: Vec<Rendered<TestCaseEntry>>) -> Result<TestCaseBatch, Fault> {
    let has_next = i64::try_from(rows.len()).is_ok_and(|count| count == slice.limit);
    if has_next {
        rows.pop();
    }
    let next = rows.last().filter(|_| has_next).map(|row| row.cursor().to_owned());
    TestCaseBatch::render(&rows, next)
}
