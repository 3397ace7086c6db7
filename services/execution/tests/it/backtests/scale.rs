//! The time of a backtest of ten million results.

use std::time::{Duration, Instant};

use anyhow::Result;
use assay_proto::{
    catalog::GateInput,
    execution::{
        BacktestGateRequest, BacktestInput, backtest_service_client::BacktestServiceClient,
    },
};
use serde_json::json;

use crate::{
    changes::{passed, run},
    world::World,
};

/// Number of executions, and of tests in each: 2 % of them are flaky, and 1 per mille breaks for a while.
const EXECUTIONS: i32 = 1000;
const TESTS: i32 = 10_000;

/// Inserts executions every two hours until now, with all results of all tests.
async fn fill(world: &World) -> Result<()> {
    run(world, "main", json!([passed("a")])).await?;
    // A backtest does not read this index, and it would be filled for minutes.
    world
        .change("alter table test_report drop constraint test_report_test_case_identifier_key")
        .await?;
    let fill = format!(
        "create table filled as
             select nr, overlay(overlay(gen_random_uuid()::text placing
                        left(first_id_at(now() - make_interval(hours => 2 * ({EXECUTIONS} - nr)))::text, 13)
                        from 1 for 13) placing '7' from 15 for 1)::uuid as id
             from generate_series(1, {EXECUTIONS}) as nr;
         insert into execution
             select (jsonb_populate_record(e, jsonb_build_object(
                 'id', filled.id, 'request_time', now() - make_interval(hours => 2 * ({EXECUTIONS} - nr)),
                 'test_cases_total', {TESTS}, 'test_cases_passed', {TESTS} - 50, 'test_cases_failed', 50,
                 'baseline', (
                     select coalesce(jsonb_agg(b.id order by b.nr desc), '[]') from filled b
                     where b.nr between filled.nr - 50 and filled.nr - 1
                 )
             ))).*
             from execution e, filled;
         create table filled_case as
             select test, gen_random_uuid() as id from generate_series(0, {TESTS} - 1) as test;
         insert into test_report (customer_id, id, execution_id, test_case_id, test_case_identifier,
                 test_case_name, test_plan_id, test_plan_revision, test_type, minimum_duration_in_min,
                 requested_instances_count, finished_instances_count, execution_number, result,
                 status, change, total_duration_in_sec, average_duration_in_sec)
             select r.customer_id, lpad(to_hex(e.nr * {TESTS}::int8 + c.test), 32, '0')::uuid, e.id, c.id, c.test::text, c.test::text,
                    r.test_plan_id, 1, 'Default', 0, 1, 1, e.nr,
                    case when result.change = 'None' then 'Passed' else 'Failed' end, 'InReview',
                    result.change, 1, 1
             from filled e
             cross join filled_case c
             cross join test_report r
             cross join lateral (select case
                 when c.test % 50 = 0 and hashint8(e.nr * {TESTS}::int8 + c.test) % 5 = 0 then 'Flaky'
                 when c.test % 1000 = 1 and e.nr % 500 between c.test / 20 and c.test / 20 + 20 then 'Still'
                 else 'None'
             end as change) as result
             where r.test_case_identifier = 'a'
             order by e.nr, c.test;
         analyze test_report;
         analyze execution"
    );
    for statement in fill.split(';') {
        world.change(statement.to_owned().leak()).await?;
    }
    Ok(())
}

/// Replays a gate over all executions, and returns the number of their results.
async fn replay(world: &World, gate: GateInput) -> Result<i32> {
    let (mut executions, mut cursor) = (0, None);
    loop {
        let request = BacktestGateRequest {
            project_id: world.project.clone(),
            test_set_id: world.set.clone(),
            backtest: Some(BacktestInput {
                gate: Some(gate.clone()),
                cursor,
                ..Default::default()
            }),
        };
        let request = world.user.caller.call_within(Duration::from_mins(2), request);
        let mut backtests = BacktestServiceClient::new(world.execution.clone());
        let part = backtests.backtest_gate(request).await?.into_inner();
        executions += part.executions;
        cursor = part.next_cursor;
        if cursor.is_none() {
            return Ok((executions - 1) * TESTS);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "fills ten million results, which takes minutes; run it alone, and read what it prints"]
async fn ten_million_results_are_replayed_in_a_minute() -> Result<()> {
    let world = World::new().await?;
    let begun = Instant::now();
    fill(&world).await?;
    println!("filled in {:.0?}", begun.elapsed());
    let limits = GateInput { max_new_failures: Some(9), ..GateInput::default() };
    let thresholds = GateInput { flaky_after_breaks: Some(5), ..GateInput::default() };
    for (name, gate) in [("other limits", limits), ("other thresholds", thresholds)] {
        let begun = Instant::now();
        let results = replay(&world, gate).await?;
        let took = begun.elapsed();
        println!("{name}: {results} results in {took:.1?}");
        assert!(results >= 10_000_000 && took < Duration::from_mins(1), "{results} in {took:?}");
    }
    Ok(())
}
