//! The days of a statement, by PostgreSQL's calendar and clock.

use assay_proto::Fault;
use assay_records::Month;
use sqlx::{FromRow, PgExecutor};

/// When a statement is issued, and when it is due.
#[derive(Debug, Default, FromRow)]
pub(super) struct Term {
    pub(super) issue_date: String,
    pub(super) due_date: String,
    /// Whether the month is over.
    pub(super) is_over: bool,
}

/// Returns the term of the statement of a month. A term of payment of more than 100 years is one of 100 years.
pub(super) async fn term(
    db: impl PgExecutor<'_>,
    month: Month,
    due_days: f64,
) -> Result<Term, Fault> {
    let term = sqlx::query_as(
        "select to_char(issued, 'YYYY-MM-DD') as issue_date,
                to_char(issued + floor(least($2, 36500))::int, 'YYYY-MM-DD') as due_date,
                issued <= (now() at time zone 'utc')::date as is_over
         from (select ($1::date + interval '1 month')::date as issued) as statement",
    );
    Ok(term.bind(month.first_day()).bind(due_days).fetch_one(db).await?)
}
