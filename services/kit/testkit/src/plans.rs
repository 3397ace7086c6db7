//! Plans of prepared statements.

use sqlx::PgPool;

/// Asserts that statements like a pattern were executed, and that PostgreSQL has one plan for all
/// executions of each. It decides after five executions on each connection, so there must be many more.
pub async fn assert_planned_once(db: &PgPool, pattern: &str) {
    let mut connections = Vec::new();
    while let Some(connection) = db.try_acquire() {
        connections.push(connection);
    }
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

/// Returns the number of rows of a table that PostgreSQL has read, of index entries and of whole reads,
/// as far as its sessions have reported them. Those of the pool report now, except busy ones.
pub async fn rows_read(db: &PgPool, table: &str) -> i64 {
    let mut connections = Vec::new();
    while let Some(connection) = db.try_acquire() {
        connections.push(connection);
    }
    for connection in &mut connections {
        sqlx::query("select pg_stat_force_next_flush()").execute(&mut **connection).await.unwrap();
    }
    drop(connections);
    let read = sqlx::query_scalar(
        "select (seq_tup_read + coalesce(sum(idx_tup_read), 0))::bigint
         from pg_stat_user_tables left join pg_stat_user_indexes using (relid)
         where pg_stat_user_tables.relname = $1
         group by seq_tup_read",
    );
    read.bind(table).fetch_one(db).await.unwrap()
}
