//! Rows that are rendered without a message in between.

use anyhow::Result;
use assay_proto::{
    Columned, Listed, Rendered, RowOf,
    catalog::{SubjectEntry, TestCaseEntry, TestSetEntry},
};
use assay_testkit::TestDatabase;
use serde_json::Value;
use sqlx::{AssertSqlSafe, FromRow, PgPool, postgres::PgRow};

/// Asserts that a row has the same JSON and cursor with a message in between.
async fn check<T>(db: &PgPool, row: &str) -> Result<()>
where
    T: for<'r> FromRow<'r, PgRow> + RowOf<T> + Columned + Unpin + 'static,
{
    let select = || AssertSqlSafe(format!("select {row}"));
    let message: T = sqlx::query_as(select()).fetch_one(db).await?;
    let rendered: Rendered<T> = sqlx::query_as(select()).fetch_one(db).await?;
    assert_eq!(rendered.cursor(), message.cursor());
    let (mut with, mut without) = (Vec::new(), Vec::new());
    message.render(&mut with)?;
    rendered.render(&mut without)?;
    assert_eq!(rendered.size(), without.len());
    let [with, without]: [Value; 2] =
        [serde_json::from_slice(&with)?, serde_json::from_slice(&without)?];
    assert_eq!(with, without, "{row}");
    Ok(())
}

#[tokio::test]
async fn a_rendered_row_is_the_json_of_its_message() -> Result<()> {
    let database = TestDatabase::empty().await?;
    let db = PgPool::connect(&database.url).await?;
    let statistic = r#"[{"ExecutionNumber": 2, "Result": "Failed", "AverageDurationInSec": 1.25}]"#;
    for (text, state, statistics) in [
        ("'plain'", "null::text", "[]"),
        (r#"E'quote " backslash \\ line \n \u0001 ü 漢 🦀 </script>'"#, "'Passed'", statistic),
    ] {
        let row = format!(
            "md5('id')::uuid as id, {text} as identifier, {text} as name, '' as description,
             null::text as last_plan_status, 'InReview' as last_report_status,
             {state} as last_result, {text} as last_sw_name, null::text as last_sw_identifier,
             '{statistics}'::jsonb as execution_statistics, array[{text}] as suites,
             jsonb_build_array(jsonb_build_object('Name', 'tag', 'Value', {text})) as labels,
             '[]'::jsonb as links"
        );
        check::<TestCaseEntry>(&db, &row).await?;
    }
    for time in ["null::timestamptz", "'2026-11-25 10:11:12.123456+00'", "'2026-11-25'"] {
        check::<TestSetEntry>(
            &db,
            &format!(
                "md5('id')::uuid as id, 'n' as name, null::text as description,
                 {time}::timestamptz as last_executed, md5('subject')::uuid as last_subject_id,
                 null::text as last_sw_identifier, null::text as last_sw_name,
                 null::jsonb as last_execution_statistic"
            ),
        )
        .await?;
    }
    Ok(())
}

#[tokio::test]
async fn columns_may_come_in_any_order() -> Result<()> {
    let database = TestDatabase::empty().await?;
    let db = PgPool::connect(&database.url).await?;
    check::<SubjectEntry>(
        &db,
        "99.5::double precision as pass_rate, 'base' as base_subject_identifier,
         null::uuid as base_subject_id, true as modification_allowed, md5('id')::uuid as id,
         'i' as identifier, 'n' as name, 'https://shop.example/' as uri,
         'Webpage' as subject_type, false as needs_public_ip, null::text as software_file_id,
         null::text as software_file_name, 9007199254740993::bigint as software_file_size,
         null::text as installation_file_id, null::text as installation_file_name,
         null::text as instruction_file_id, null::text as instruction_file_name,
         null::text as framework_file_id",
    )
    .await
}

#[tokio::test]
async fn a_column_that_is_missing_is_named() -> Result<()> {
    let database = TestDatabase::empty().await?;
    let db = PgPool::connect(&database.url).await?;
    let rendered: Result<Rendered<TestCaseEntry>, _> =
        sqlx::query_as("select md5('id')::uuid as id, 'n' as name").fetch_one(&db).await;
    let error = rendered.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("identifier"), "{error}");
    Ok(())
}
