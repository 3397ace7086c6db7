//! Plans of prepared statements.

use std::iter;

use sqlx::{PgPool, Postgres, pool::PoolConnection};

/// Asserts that statements like a pattern were executed, and that PostgreSQL has one plan for all
/// executions of each. It decides after five executions on each connection, so there must be many more.
pub async fn assert_planned_once(db: &PgPool, pattern: &str) {
    let mut connections = idle(db);
    let mut planned = 0;
    for connection in &mut connections {
        let plans = sqlx::query_scalar::<_, i64>(
            "select coalesce(sum(custom_plans), 0)::bigint from pg_prepared_statements
             where statement like $1 and statement not like '%pg_prepared_statements%'",
        );
        planned += plans.bind(pattern).fetch_one(&mut **connection).await.unwrap();
    }
    let most = 5 * i64::try_from(connections.len()).unwrap();
    assert!((1..=most).contains(&planned), "{planned} plans of {pattern}");
}

/// Returns how many entries of the indexes of a table PostgreSQL has read, and how many rows without an
/// index. The idle connections of the pool are up to date; other sessions report about once a second.
pub async fn rows_read(db: &PgPool, table: &str) -> i64 {
    for mut connection in idle(db) {
        sqlx::query("select pg_stat_force_next_flush()").execute(&mut *connection).await.unwrap();
    }
    let read = sqlx::query_scalar(
        "select (seq_tup_read + coalesce(sum(idx_tup_read), 0))::bigint
         from pg_stat_user_tables left join pg_stat_user_indexes using (relid)
         where pg_stat_user_tables.relname = $1
         group by seq_tup_read",
    );
    read.bind(table).fetch_one(db).await.unwrap()
}

fn idle(db: &PgPool) -> Vec<PoolConnection<Postgres>> {
    iter::from_fn(|| db.try_acquire()).collect()
}
