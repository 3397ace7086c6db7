//! `verify` finds differences between stored data and results, and `rebuild` repairs them.

mod customers;
mod members;
mod projects;

use assay::Compared;
use assay_database::connect_options;
use assay_testkit::{Api, eventually};
use secrecy::SecretString;
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use crate::{
    junit::upload,
    world::{World, create_project, id},
};

const JUNIT: &str = r#"<testsuite name="shop">
    <testcase classname="Cart" name="adds up" time="0.5" timestamp="2026-11-20T12:00:00Z"/>
    <testcase classname="Cart" name="ships" time="1.5"><failure message="lost"/></testcase>
    <testcase classname="Cart" name="prints"><skipped/></testcase>
    <testcase classname="Cart" name="adds up" time="0.25"><error message="late"/></testcase>
</testsuite>"#;

/// Creates a project with a test set, and returns their paths.
async fn project_with_set(api: &Api) -> (String, String) {
    let project = create_project(api).await;
    let set = api.post(&format!("{project}/testsets"), json!({"Name": "Nightly"})).await.created();
    let set = format!("{project}/testsets/{}", id(&set));
    (project, set)
}

async fn change(database: &SecretString, statement: &str) {
    let mut db = connect(database).await;
    let done = sqlx::query(AssertSqlSafe(statement)).execute(&mut db).await.unwrap();
    assert!(done.rows_affected() > 0, "{statement} changed nothing");
    db.close().await.unwrap();
}

/// Whether a statement returns rows.
async fn has_rows(database: &SecretString, statement: &str) -> bool {
    let mut db = connect(database).await;
    let found = sqlx::query(AssertSqlSafe(statement)).fetch_optional(&mut db).await.unwrap();
    db.close().await.unwrap();
    found.is_some()
}

async fn connect(database: &SecretString) -> PgConnection {
    PgConnection::connect_with(&connect_options(database).unwrap()).await.unwrap()
}

/// The numbers of what was compared, and the differences.
async fn compared(world: &World) -> (Compared, Vec<String>) {
    let mut found = Vec::new();
    let compared =
        assay::verify(world.databases(), |one| found.push(one.to_string())).await.unwrap();
    assert_eq!(usize::try_from(compared.differences).unwrap(), found.len());
    (compared, found)
}

async fn differences(world: &World) -> Vec<String> {
    let (compared, found) = compared(world).await;
    let Compared { executions, projects, customers, .. } = compared;
    assert!(executions > 0 && projects > 0 && customers > 0, "{compared:?}");
    found
}

/// Waits until all services have received all changes.
async fn has_no_differences(world: &World) {
    eventually("no differences", || async { differences(world).await.is_empty().then_some(()) })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn differences_are_found_and_repaired() {
    let world = World::start().await;
    let api = &world.api;
    let (project, set) = project_with_set(api).await;
    upload(api, &set, JUNIT).await.expect(201);
    let started = api.post(&format!("{set}/executions"), json!({"Mode": "External"})).await;
    let started = started.created();
    let at = format!("{project}/executions/{}", id(&started));
    let one = json!([{"Identifier": "Cart.ships", "Result": "Passed", "DurationInSec": 0.1}]);
    api.post(&format!("{at}/results"), one).await.ok();
    let report = &api.get(&at).await.ok()["TestReports"][1];
    let field = |name: &str| report[name].as_str().unwrap().to_owned();
    let report = format!(
        "{project}/testcases/{}/testplans/{}/testreports/{}",
        field("TestCaseId"),
        field("TestPlanId"),
        id(report)
    );
    api.put(&report, json!({"Status": "Accepted"})).await.ok();
    has_no_differences(&world).await;

    let [catalog, execution] = world.catalog_and_execution();
    for statement in [
        "update execution set test_cases_passed = test_cases_passed + 1,
             test_cases_total = test_cases_total + 1",
        "update test_report set result = 'Passed', total_duration_in_sec = 7
         where result = 'Failed'",
        "update test_case_counter set executions = executions + 5",
    ] {
        change(execution, statement).await;
    }
    change(catalog, "update test_case set last_result = 'Aborted'").await;
    change(catalog, "update test_report set result = 'Canceled'").await;
    change(catalog, "update test_set set last_sw_name = 'another', last_run_duration = '1'").await;

    let found = differences(&world).await;
    for expected in [
        "test_cases_passed is",
        "test_cases_total is",
        "result is Passed, but should be Failed",
        "total_duration_in_sec is 7, but should be 1.5",
        "ExecutionNumber is",
        "test case ",
        "test set ",
    ] {
        assert!(found.iter().any(|one| one.contains(expected)), "{expected}: {found:#?}");
    }

    let repaired = assay::rebuild(world.databases()).await.unwrap();
    assert!(repaired >= 4, "{repaired}");
    eventually("the catalog to apply the events", || async {
        differences(&world).await.is_empty().then_some(())
    })
    .await;
    let set = api.get(&set).await.ok();
    assert_eq!(set["LastExecutionStatistic"]["TestCasesPassed"], 1);
    assert_eq!(assay::rebuild(world.databases()).await.unwrap(), 0, "all differences are repaired");
    assert_eq!(api.get(&report).await.ok()["Status"], "Accepted", "reviews stay");
    world.stop().await;
}

/// Damages of the catalog, and a part of the difference.
const CATALOG: &[(&str, &str)] = &[
    ("update test_report set revision = revision + 1000", "test report "),
    ("update test_report set result = 'Aborted', revision = revision + 1000", "test report "),
    ("update test_report set test_case_id = gen_random_uuid()", "test report "),
    (
        "insert into test_report select customer_id, gen_random_uuid(), test_case_id, test_plan_id,
          execution_number + 1, 'Error', status, start_date_time, finish_date_time,
          average_duration_in_sec, software_name, software_identifier, revision
      from test_report limit 1",
        "test report ",
    ),
    ("delete from test_report", "test report "),
    ("update test_case set execution_statistics = '[]'", "test case "),
    ("update test_case set last_result = 'Error', last_report_status = 'Canceled'", "test case "),
    ("update test_set set last_execution_id = 'ffffffff-0000-7000-8000-000000000000'", "test set "),
    (
        "update test_set set last_execution_revision = last_execution_revision + 1000,
          last_execution_statistic = '{}'",
        "test set ",
    ),
    ("update project set overall_result = 'Passed', result_revision = 1000000", "project "),
    (
        "update project set overall_status = 'Accepted',
          status_execution_id = 'ffffffff-0000-7000-8000-000000000000'",
        "project ",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn damages_of_the_catalog_are_found_and_repaired() {
    let world = World::start().await;
    let api = &world.api;
    let (project, set) = project_with_set(api).await;
    upload(api, &set, JUNIT).await.expect(201);
    upload(api, &set, JUNIT).await.expect(201);
    has_no_differences(&world).await;
    let shown = async || {
        let cases = api.get(&format!("{project}/testcases")).await.ok();
        (api.get(&set).await.ok(), api.get(&project).await.ok(), cases)
    };
    let right = shown().await;

    let [catalog, _] = world.catalog_and_execution();
    for (damage, expected) in CATALOG {
        change(catalog, damage).await;
        let found = differences(&world).await;
        assert!(found.iter().any(|one| one.starts_with(expected)), "{damage}: {found:#?}");
        // Some are repaired by the events that this publishes, before the catalog is compared.
        assay::rebuild(world.databases()).await.unwrap();
        assert_eq!(differences(&world).await, [""; 0], "{damage}");
        assert_eq!(shown().await, right, "{damage}");
    }

    // As a backup of the catalog from before the upload.
    for table in ["test_report", "test_set_case", "test_plan", "test_case", "test_set"] {
        change(catalog, &format!("delete from {table}")).await;
    }
    let found = differences(&world).await;
    for (noun, number) in [("test case ", 3), ("test set ", 1)] {
        let lacking = |one: &&String| one.starts_with(noun) && one.contains("the catalog lacks it");
        assert_eq!(found.iter().filter(lacking).count(), number, "{found:#?}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn executions_that_a_restored_backup_lacks_are_no_longer_shown() {
    let world = World::start().await;
    let api = &world.api;
    let (project, set) = project_with_set(api).await;
    let passed = r#"<testsuite><testcase name="pays"/></testsuite>"#;
    let failed = r#"<testsuite><testcase name="pays"><failure/></testcase></testsuite>"#;
    upload(api, &set, passed).await.expect(201);
    let lost = upload(api, &set, failed).await.created();
    let lost = id(&lost);
    let result = async || {
        let cases = api.get(&format!("{project}/testcases")).await.ok();
        cases[0]["LastResult"].as_str().map(ToOwned::to_owned)
    };
    eventually("the failure to be shown", async || {
        (result().await.as_deref() == Some("Failed")).then_some(())
    })
    .await;

    // The dump of the execution service was taken before the one of the catalog.
    let [_, execution] = world.catalog_and_execution();
    for statement in [
        format!(
            "delete from instance where test_report_id in (
                     select id from test_report where execution_id = '{lost}')"
        ),
        format!("delete from failure where execution_id = '{lost}'"),
        format!("delete from test_report where execution_id = '{lost}'"),
        format!("delete from execution where id = '{lost}'"),
        "update test_case_counter set executions = 1".to_owned(),
    ] {
        change(execution, &statement).await;
    }
    let found = differences(&world).await;
    for expected in ["test report ", "test case ", "test set ", "project "] {
        assert!(found.iter().any(|one| one.starts_with(expected)), "{expected}: {found:#?}");
    }
    assay::rebuild(world.databases()).await.unwrap();
    assert_eq!(differences(&world).await, [""; 0]);
    assert_eq!(result().await.as_deref(), Some("Passed"));

    // The next one has the number of the lost one.
    upload(api, &set, failed).await.expect(201);
    eventually("the next failure to be shown", async || {
        (result().await.as_deref() == Some("Failed")).then_some(())
    })
    .await;
    has_no_differences(&world).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retention_time_that_the_catalog_does_not_have_is_found_and_repaired() {
    let world = World::start().await;
    let (project, set) = project_with_set(&world.api).await;
    upload(&world.api, &set, JUNIT).await.expect(201);
    world.api.put(&project, json!({"RetentionInDays": 30})).await.ok();
    has_no_differences(&world).await;

    // A restored catalog has the value and the revision of its backup.
    let [catalog, execution] = world.catalog_and_execution();
    let restored = "update project set retention_in_days = null, revision = revision - 1";
    change(catalog, restored).await;
    let found = differences(&world).await;
    let [found] = &found[..] else { panic!("{found:?}") };
    assert!(found.ends_with("the retention is 30, but should be null"), "{found}");
    assay::rebuild(world.databases()).await.unwrap();
    assert_eq!(differences(&world).await, [""; 0]);

    // A later revision than that of the project keeps its next changes from being applied.
    change(execution, "update retention set revision = revision + 5").await;
    let found = differences(&world).await;
    let [found] = &found[..] else { panic!("{found:?}") };
    assert!(found.contains("the retention is of revision "), "{found}");
    assay::rebuild(world.databases()).await.unwrap();
    assert_eq!(differences(&world).await, [""; 0]);
}
