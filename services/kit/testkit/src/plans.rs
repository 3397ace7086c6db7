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
