//! The tables of the catalog after the purge of a customer.

use std::collections::BTreeMap;

use assay_proto::{CustomerId, ExecutionId, TestCaseId, TestReportId, TestResult, catalog::*};
use sqlx::{AssertSqlSafe, PgPool};

use crate::{
    file::resumable::{append, begin},
    shown::Shown,
};

/// Tables with a customer whose rows stay: what was deleted, so that late events bring nothing back, and events, which
/// are removed some days after their publication.
const KEPT: [&str; 3] = ["deleted_customer", "outbox", "project"];

/// Tables with a customer that have rows only if something goes on, or has gone wrong.
const EMPTY: [&str; 4] = ["deleted_customer", "inbox_parked", "stray_content", "unfinished_work"];

/// Number of rows of a customer in each table.
async fn rows_of(db: &PgPool, customer: CustomerId) -> BTreeMap<String, i64> {
    let tables = "select table_name::text from information_schema.columns
        where table_schema = 'public' and column_name = 'customer_id'";
    let tables: Vec<String> = sqlx::query_scalar(tables).fetch_all(db).await.unwrap();
    let mut rows = BTreeMap::new();
    for table in tables {
        let count = format!("select count(*) from {table} where customer_id = $1");
        let count = sqlx::query_scalar(AssertSqlSafe(count)).bind(customer);
        rows.insert(table, count.fetch_one(db).await.unwrap());
    }
    rows
}

#[tokio::test]
async fn the_purge_of_a_customer_leaves_none_of_its_rows_in_any_table() {
    let shown = Shown::start().await;
    let Shown { world, user, project, case, subject, .. } = &shown;
    let customer = user.identity.customer;
    let report = shown.report(TestReportId::new(), 1, 1, TestResult::Passed);
    let mut of_unknown = shown.report(TestReportId::new(), 1, 1, TestResult::Passed);
    of_unknown.test_case_id = TestCaseId::new().to_string();
    shown.apply_reports(&shown.reports(ExecutionId::new(), vec![report, of_unknown])).await;
    let aliases = ReplaceAliasesRequest {
        project_id: project.id.clone(),
        id: case.id.clone(),
        aliases: Some(TestCaseAliasesInput { aliases: vec!["alias".to_owned()] }),
    };
    user.cases().replace_aliases(user.call(aliases)).await.unwrap();
    let lab = EnvironmentInput { name: "Lab".into(), ..EnvironmentInput::default() };
    user.create_environment(project, lab).await.unwrap();
    user.add_favorite(RecordKind::Project, &project.id).await.unwrap();
    user.open(RecordKind::Project, &project.id).await;
    user.has_opened(RecordKind::Project, &project.id, std::slice::from_ref(&project.id)).await;
    user.upload(project, "shop.msi", b"MSI").await.unwrap();
    let upload = begin(user, project, 100).await.unwrap();
    append(user, &upload, 0, b"MSI").await.unwrap();
    let reference = "insert into file_reference (customer_id, file_id, noun, record_id, field)
                     select customer_id, id, 'subject', $1::uuid, 'Uri' from file";
    sqlx::query(reference).bind(&subject.id).execute(&world.db).await.unwrap();
    for statement in [
        "update project set ticket_url = 'https://tickets.test/{ticket}'",
        "insert into appliances select customer_id, '{lab}', 1 from project",
    ] {
        sqlx::query(statement).execute(&world.db).await.unwrap();
    }
    for (table, count) in rows_of(&world.db, customer).await {
        assert_eq!(
            count == 0,
            EMPTY.contains(&table.as_str()),
            "{count} rows in the table {table}"
        );
    }

    let mut tx = assay_database::begin(&world.db).await.unwrap();
    assay_catalog::delete_customer(&mut tx, customer).await.unwrap();
    tx.commit().await.unwrap();
    assay_catalog::purge(&world.db).await.unwrap();
    world.files.sweep().await.unwrap();

    let mut left = rows_of(&world.db, customer).await;
    left.retain(|table, count| *count > 0 && !KEPT.contains(&table.as_str()));
    assert_eq!(left, BTreeMap::new());
    let texts = "select name || description || ticket_url || coalesce(report_template_id, '')
                 from project";
    let texts: String = sqlx::query_scalar(texts).fetch_one(&world.db).await.unwrap();
    assert_eq!(texts, "", "the row of the project has no texts of users");
}
