//! The tables of the service after the purge of a customer.

use std::collections::BTreeMap;

use anyhow::Result;
use assay_execution::{evaluate_monitors, purge_deleted};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use super::{delete, with_work};
use crate::world::World;

/// Tables with a customer whose rows stay: its deletion, so that late events bring nothing back; events, which are removed
/// some days after their publication; and changes of sizes, which a task adds up.
const KEPT: [&str; 3] = ["deletion", "outbox", "usage"];

/// Tables with a customer that have rows only if something goes on, or has gone wrong.
const EMPTY: [&str; 3] = ["deletion", "inbox_parked", "unfinished_work"];

/// Rows in all tables, beside those of executions with work.
const ROWS: &str = "
    insert into instance (customer_id, test_report_id, id, instance_nr, duration_in_sec, result)
         select customer_id, id, id, 1, 1, 'Passed' from test_report on conflict do nothing;
    insert into attempt (customer_id, test_report_id, instance_nr, attempt, steps, artifacts_uri,
             report_uri, debug_log_uri, execution_log_uri, installation_log_uri)
         select customer_id, id, 1, 1, '', '', '', '', '', '' from test_report on conflict do nothing;
    insert into test_case_counter (customer_id, test_case_id, executions)
         select distinct customer_id, test_case_id, 1 from test_report on conflict do nothing;
    insert into execution_tag (customer_id, project_id, tag, execution_id)
         select customer_id, project_id, 'nightly', id from execution on conflict do nothing;
    insert into reporter (customer_id, execution_id, name)
         select customer_id, id, 'shard' from execution;
    insert into upload (customer_id, execution_id, digest)
         select customer_id, id, 'digest' from execution;
    insert into share_link (customer_id, id, execution_id, token_hash, expires_at, created_by_id,
             created_by)
         select customer_id, gen_random_uuid(), id, id::text::bytea, now(), id, 'Ada' from execution;
    insert into failure (customer_id, test_report_id, instance_nr, project_id, execution_id,
             test_case_id, fingerprint, version, headline)
         select r.customer_id, r.id, 1, e.project_id, e.id, r.test_case_id, 'cause', 1, 'no route'
         from test_report r
         join execution e on e.customer_id = r.customer_id and e.id = r.execution_id;
    insert into case_day
         select distinct on (r.test_case_id) e.customer_id, e.project_id, r.test_case_id,
                '2026-01-01'::date, 'main', 1, 0, 0, 0, 0, 1, false, e.id, false
         from test_report r
         join execution e on e.customer_id = r.customer_id and e.id = r.execution_id;
    insert into known_failure (customer_id, id, project_id, fingerprint, headline, ticket, comment,
             muted_until, created_by_id, created_by)
         select customer_id, id, project_id, 'cause', '', '', '', now(), id, 'Ada'
         from execution limit 1;
    insert into test_case_state (customer_id, project_id, test_case_id, test_case_identifier,
             test_case_name, state, until, ticket, reason, owner, changed_by_id, changed_by)
         select customer_id, project_id, id, 'a', 'A', 'Muted', now(), '', '', '', id, 'Ada'
         from execution limit 1;
    insert into monitor (customer_id, id, project_id, name, measure, runs, threshold, branch,
             action, recover_after, dry_run, created_by_id, created_by)
         select customer_id, id, project_id, 'Flaky', 'Recoveries', 10, 1, '', 'Notify', 1, false,
                id, 'Ada'
         from execution limit 1;
    insert into monitor_alarm (customer_id, monitor_id, test_case_id)
         select customer_id, id, id from monitor;
    insert into monitor_action (customer_id, id, monitor_id, execution_id, test_case_id,
             test_case_identifier, test_case_name, action, reason, is_dry)
         select customer_id, id, id, id, id, 'a', 'A', 'Raised', 'flaky', false from monitor;
    insert into monitor_evaluation (customer_id, execution_id)
         select customer_id, id from execution;
    insert into incident (customer_id, id, project_id, kind, headline, begun_at, last_seen_at)
         select customer_id, id, project_id, 'Outage', 'no route', now(), now()
         from execution limit 1;
    insert into incident_execution (customer_id, incident_id, execution_id, test_set_id)
         select i.customer_id, i.id, e.id, e.test_set_id from incident i, execution e;
    insert into incident_search (customer_id, execution_id)
         select customer_id, id from execution;
    insert into cause_rule (customer_id, id, project_id, pattern, comment, created_by_id, created_by)
         select customer_id, id, project_id, 'no route', '', id, 'Ada' from execution limit 1;
    insert into changed_causes (customer_id, project_id)
         select customer_id, project_id from execution limit 1;
    insert into deleted_record (customer_id, project_id, id)
         select customer_id, project_id, id from execution;
    insert into launch (customer_id, id, number, project_id, execution_id)
         select customer_id, id, 1, project_id, id from execution;
    insert into launch_request (customer_id, launch_id, kind, body)
         select customer_id, id, 'File', 'picture' from launch;
    insert into live_log (customer_id, lease_id, execution_id, test_report_id, size)
         select l.customer_id, l.id, s.execution_id, s.test_report_id, 3
         from lease l join schedule s on s.customer_id = l.customer_id and s.id = l.schedule_id;
    insert into live_log_chunk (customer_id, lease_id, start, content)
         select customer_id, lease_id, 0, 'one' from live_log;
    insert into number (customer_id, kind, number, scope_id, key, details)
         select customer_id, 'Section', 1, project_id, 'Cart', '{}' from execution limit 1;
    insert into number_counter (customer_id, kind, last)
         select customer_id, kind, number from number;
    insert into stray_file (customer_id, execution_id, artifact_id, since)
         select customer_id, id, gen_random_uuid(), now() - interval '2 hours' from execution;
    insert into execution_time (customer_id, execution_id, project_id, test_set_id, target_group,
             month, instances, duration_in_sec)
         select customer_id, id, project_id, test_set_id, '', '2026-01-01', 1, 1 from execution;
    insert into pool (customer_id, project_id, id, name, values)
         select customer_id, project_id, id, 'accounts', '[{}]' from execution limit 1;
    insert into used_value (customer_id, value_id, pool_id, project_id, lease_id)
         select customer_id, id, id, id, id from lease;
    insert into occupied_environment (customer_id, environment_id, project_id, lease_id)
         select customer_id, id, id, id from lease;
    insert into engine (customer_id, id, name, target_group, labels, version)
         select customer_id, id, 'another', '', '{}', '' from execution limit 1;
    insert into retention (customer_id, project_id, revision)
         select customer_id, project_id, 1 from execution limit 1;
    insert into customer_state (customer_id, is_archived, changed_at)
         select customer_id, false, now() from execution limit 1;
    insert into appliances (customer_id, target_groups, revision)
         select customer_id, '{lab}', 1 from execution limit 1;";

/// Number of rows of the customer in each table.
async fn rows_of(world: &World) -> Result<BTreeMap<String, i64>> {
    let tables = "select c.relname::text from pg_class c
         join pg_attribute a on a.attrelid = c.oid
         where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
           and not c.relispartition and a.attname = 'customer_id'";
    let tables: Vec<String> = sqlx::query_scalar(tables).fetch_all(&world.db).await?;
    let mut rows = BTreeMap::new();
    for table in tables {
        let count = format!("select count(*) from {table} where customer_id = $1");
        let count = sqlx::query_scalar(AssertSqlSafe(count)).bind(world.user.customer);
        rows.insert(table, count.fetch_one(&world.db).await?);
    }
    Ok(rows)
}

#[tokio::test]
async fn the_purge_of_a_customer_leaves_none_of_its_rows_in_any_table() -> Result<()> {
    let world = World::new().await?;
    with_work(&world).await?;
    sqlx::raw_sql(ROWS).execute(&world.db).await?;
    for (table, count) in rows_of(&world).await? {
        assert_eq!(
            count == 0,
            EMPTY.contains(&table.as_str()),
            "{count} rows in the table {table}"
        );
    }

    delete(&world, &Uuid::nil().to_string()).await?;
    world.change("update deletion set deleted_at = now() - interval '1 day'").await?;
    purge_deleted(&world.db, world.artifacts_store()).await?;
    evaluate_monitors(&world.db).await?;

    let mut left = rows_of(&world).await?;
    left.retain(|table, count| *count > 0 && !KEPT.contains(&table.as_str()));
    assert_eq!(left, BTreeMap::new());
    assert_eq!(world.count("select coalesce(sum(bytes), 0)::bigint from usage").await?, 0);
    assert_eq!(world.files(), 0);
    Ok(())
}
