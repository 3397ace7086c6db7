//! The ids of executions and reports, whose order is that of time.

use anyhow::Result;
use assay_proto::execution::OpenExecutionInput;
use serde_json::json;

use crate::world::World;

#[tokio::test]
async fn reports_have_the_time_of_their_execution() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1), ("b", 1)]).await?;
    world.start().await?;
    world.dispatch().await?;
    world.upload(&[b"<testsuite><testcase name='a'/><testcase name='c'/></testsuite>"]).await?;
    let open = OpenExecutionInput {
        project: "Shop".to_owned(),
        test_set: "Nightly".to_owned(),
        ..OpenExecutionInput::default()
    };
    let open = world.open(open).await?;
    for name in ["d", "e"] {
        let result = json!([{ "Identifier": name, "Result": "Passed" }]);
        world.report(&open.id, result).await?;
    }

    assert_eq!(world.count("select count(*) from test_report").await?, 8);
    let others = "select count(*) from test_report r join execution e on e.id = r.execution_id
         where left(r.id::text, 13) <> left(e.id::text, 13)";
    assert_eq!(world.count(others).await?, 0, "so they are in the partitions of its month");
    let names: Vec<String> = sqlx::query_scalar(
        "select test_case_identifier from test_report where execution_id = $1::uuid order by id",
    )
    .bind(&open.id)
    .fetch_all(&world.db)
    .await?;
    assert_eq!(names, ["d", "e"]);
    Ok(())
}

#[tokio::test]
async fn a_later_execution_has_a_larger_id_even_if_the_clock_steps_back() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    world.start().await?;
    world
        .change(
            "insert into execution
             select (jsonb_populate_record(e, jsonb_build_object(
                        'id', next_id(first_id_at(now() + interval '6 hours'))
                    ))).*
             from execution e",
        )
        .await?;
    let later = world.start().await?;
    let last: String =
        sqlx::query_scalar("select id::text from execution order by id desc limit 1")
            .fetch_one(&world.db)
            .await?;
    assert_eq!(last, later.id);
    assert_eq!(later.id.as_bytes()[14], b'7', "{}", later.id);
    Ok(())
}
