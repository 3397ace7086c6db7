//! Results of executions in the catalog, from the events of the execution service.

#![expect(clippy::float_cmp, reason = "these numbers are stored exactly")]

use assay_catalog::reactions::{Reactions, execution_changed, reports_changed};
use assay_events::{
    Consumer, Event, EventType, ExecutionAction, Nats, NatsConfig, RecordKind, Relay,
    ReportsAction, Stream, publish,
};
use assay_proto::{
    ExecutionId, ExecutionStatus, ReportStatus, TestCaseId, TestReportId, TestResult,
    catalog::{ListFilter, RecordKind as Kind},
    events::ReportState,
};
use assay_records::Action;
use assay_runtime::Runtime;
use assay_servers::DataDir;
use assay_testkit::{TestDatabase, eventually};
use clap::Parser;
use sqlx::{PgPool, migrate::Migrator};
use uuid::{NoContext, Uuid};

use crate::shown::{Shown, time};

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    nats: NatsConfig,
}

#[tokio::test]
async fn a_set_shows_its_latest_execution() {
    let shown = Shown::start().await;
    let [old, new] = [ExecutionId::new(), ExecutionId::new()];
    let completed = shown.execution(new, 5, ExecutionStatus::Completed);
    shown.apply(&completed).await;
    let set = shown.user.get_set(&shown.set.id).await.unwrap();
    assert_eq!(set.last_run_duration, "01:02:03");
    assert_eq!(set.last_executed, Some(time("2026-11-20T10:00:00Z")));
    assert_eq!(set.last_subject_id.as_ref(), Some(&shown.subject.id));
    assert_eq!(set.last_sw_identifier.as_deref(), Some("1.0"));
    assert_eq!(set.last_sw_name.as_deref(), Some("Web shop"));
    assert_eq!(set.last_execution_statistic, completed.statistic);
    assert_eq!(set.data_version, shown.set.data_version);
    let events = shown.world.events().await.len();

    // A duplicate, an older state, and an older execution that ends later.
    let mut late = shown.execution(old, 99, ExecutionStatus::Completed);
    late.run_duration_in_sec = 1.0;
    for stale in [&completed, &shown.execution(new, 1, ExecutionStatus::Queued), &late] {
        shown.apply(stale).await;
    }
    assert_eq!(shown.user.get_set(&shown.set.id).await.unwrap(), set);
    assert_eq!(shown.world.events().await.len(), events);

    let mut long = shown.execution(new, 6, ExecutionStatus::Completed);
    long.run_duration_in_sec = 100.0 * 3600.0 + 0.9;
    shown.apply(&long).await;
    let set = shown.user.get_set(&shown.set.id).await.unwrap();
    assert_eq!(set.last_run_duration, "100:00:00");
}

#[tokio::test]
async fn the_pass_rate_is_that_of_the_latest_completed_execution() {
    let shown = Shown::start().await;
    let [first, second] = [ExecutionId::new(), ExecutionId::new()];
    let rate = async || shown.user.get_subject(&shown.project, &shown.subject.id).await.pass_rate;
    shown.apply(&shown.execution(first, 2, ExecutionStatus::Completed)).await;
    assert_eq!(rate().await, 75.0);
    let mut running = shown.execution(second, 1, ExecutionStatus::Running);
    running.statistic.as_mut().unwrap().test_cases_passed = 0;
    shown.apply(&running).await;
    assert_eq!(rate().await, 75.0);
    let mut canceled = shown.execution(second, 2, ExecutionStatus::Canceled);
    canceled.statistic.as_mut().unwrap().test_cases_passed = 0;
    shown.apply(&canceled).await;
    assert_eq!(rate().await, 75.0);
    let mut empty = shown.execution(second, 3, ExecutionStatus::Completed);
    empty.statistic.as_mut().unwrap().test_cases_total = 0;
    empty.statistic.as_mut().unwrap().test_cases_passed = 0;
    shown.apply(&empty).await;
    assert_eq!(rate().await, 0.0);
}

#[tokio::test]
async fn a_project_shows_the_result_of_its_latest_execution() {
    let shown = Shown::start().await;
    let [old, new] = [ExecutionId::new(), ExecutionId::new()];
    shown.apply(&shown.execution(new, 1, ExecutionStatus::Running)).await;
    assert_eq!(shown.project().await.overall_result, None);
    shown.apply(&shown.execution(new, 2, ExecutionStatus::Completed)).await;
    assert_eq!(shown.project().await.overall_result(), TestResult::Failed);
    let mut late = shown.execution(old, 9, ExecutionStatus::Completed);
    late.result = TestResult::Passed.into();
    shown.apply(&late).await;
    assert_eq!(shown.project().await.overall_result(), TestResult::Failed);
    assert_eq!(shown.project().await.data_version, shown.project.data_version);
}

#[tokio::test]
async fn reordered_and_repeated_report_events_have_the_same_effect() {
    let shown = Shown::start().await;
    let executions: Vec<_> = (0..12).map(|_| ExecutionId::new()).collect();
    let mut messages = Vec::new();
    for (number, execution) in (1..).zip(&executions) {
        let id = TestReportId::new();
        let running = shown.report(id, number, 1, TestResult::NotExecuted);
        let mut done = shown.report(id, number, 2, TestResult::Passed);
        done.average_duration_in_sec = f64::from(number);
        let mut reviewed = ReportState { revision: 3, ..done.clone() };
        reviewed.status = ReportStatus::Accepted.into();
        messages.push(shown.reports(*execution, vec![done, running]));
        messages.push(shown.reports(*execution, vec![reviewed]));
    }
    // In reverse order, then all messages again.
    for message in messages.iter().rev().chain(&messages) {
        shown.apply_reports(message).await;
    }

    let case = shown.user.get_case(&shown.case.id).await;
    let numbers: Vec<_> = case.execution_statistics.iter().map(|s| s.execution_number).collect();
    assert_eq!(numbers, (3..=12).rev().collect::<Vec<_>>());
    assert_eq!(case.execution_statistics[0].average_duration_in_sec, 12.0);
    assert_eq!(case.execution_statistics[0].result(), TestResult::Passed);
    assert_eq!(case.last_result(), TestResult::Passed);
    assert_eq!(case.last_report_status(), ReportStatus::Accepted);
    assert_eq!(case.last_sw_name.as_deref(), Some("Web shop"));
    assert_eq!(case.last_sw_identifier.as_deref(), Some("1.0"));
    assert_eq!(case.data_version, shown.case.data_version);
    let plan = shown.user.get_plan(&shown.plan.id).await;
    assert_eq!(plan.execution_statistics, case.execution_statistics);
    assert_eq!(plan.test_reports.len(), 12);
    assert_eq!(plan.test_reports[0].execution_number, 12);
    assert_eq!(plan.test_reports[0].status(), ReportStatus::Accepted);
    assert_eq!(plan.test_reports[0].finish_date_time, Some(time("2026-11-20T10:01:00Z")));
    assert_eq!(shown.project().await.overall_status(), ReportStatus::Accepted);
}

/// A catalog that was restored from a backup lacks test cases that the execution service has.
#[tokio::test]
async fn reports_of_a_test_case_that_the_catalog_lacks_are_left_out() {
    let shown = Shown::start().await;
    let known = shown.report(TestReportId::new(), 1, 1, TestResult::Passed);
    let mut unknown = shown.report(TestReportId::new(), 1, 1, TestResult::Failed);
    unknown.test_case_id = TestCaseId::new().to_string();
    let reports = shown.reports(ExecutionId::new(), vec![unknown, known.clone()]);
    shown.apply_reports(&reports).await;

    let stored: Vec<String> = sqlx::query_scalar("select id::text from test_report")
        .fetch_all(&shown.world.db)
        .await
        .unwrap();
    assert_eq!(stored, [known.id]);
    assert_eq!(shown.user.get_case(&shown.case.id).await.last_result(), TestResult::Passed);
}

#[tokio::test]
async fn a_result_of_the_past_that_arrives_later_is_not_the_last_one() {
    let shown = Shown::start().await;
    let past = TestReportId(Uuid::new_v7(uuid::Timestamp::from_unix(NoContext, 1_546_300_800, 0)));
    let today = shown.report(TestReportId::new(), 1, 1, TestResult::Failed);
    let imported = shown.report(past, 2, 1, TestResult::Passed);
    shown.apply_reports(&shown.reports(ExecutionId::new(), vec![today])).await;
    shown.apply_reports(&shown.reports(ExecutionId::new(), vec![imported])).await;

    let case = shown.user.get_case(&shown.case.id).await;
    assert_eq!(case.last_result(), TestResult::Failed);
    let numbers: Vec<_> = case.execution_statistics.iter().map(|s| s.execution_number).collect();
    assert_eq!(numbers, [1, 2], "the latest execution first");
    let plan = shown.user.get_plan(&shown.plan.id).await;
    assert_eq!(plan.execution_statistics, case.execution_statistics);
    assert_eq!(plan.test_reports[0].execution_number, 1);
}

#[tokio::test]
async fn a_project_shows_the_status_of_its_latest_finished_report() {
    let shown = Shown::start().await;
    let [old, new] = [ExecutionId::new(), ExecutionId::new()];
    let [first, last] = [TestReportId::new(), TestReportId::new()];
    let mut earlier = shown.report(last, 2, 1, TestResult::Passed);
    earlier.status = ReportStatus::Rejected.into();
    let mut later = shown.report(first, 1, 1, TestResult::Passed);
    later.finish_date_time = Some(time("2026-11-20T11:00:00Z"));
    shown.apply_reports(&shown.reports(new, vec![later.clone(), earlier])).await;
    assert_eq!(shown.project().await.overall_status(), ReportStatus::InReview);

    let mut of_old = shown.report(TestReportId::new(), 3, 7, TestResult::Error);
    of_old.status = ReportStatus::EngineExecutionFailure.into();
    of_old.finish_date_time = None;
    shown.apply_reports(&shown.reports(old, vec![of_old])).await;
    assert_eq!(shown.project().await.overall_status(), ReportStatus::InReview);
    later.revision = 2;
    later.status = ReportStatus::Investigation.into();
    shown.apply_reports(&shown.reports(new, vec![later])).await;
    assert_eq!(shown.project().await.overall_status(), ReportStatus::Investigation);
}

#[tokio::test]
async fn a_message_with_500_reports_is_applied() {
    let shown = Shown::start().await;
    let mut reports = Vec::new();
    for number in 0..500 {
        let case = shown.user.case(&shown.project, &format!("case-{number}")).await;
        let mut report = shown.report(TestReportId::new(), 1, 1, TestResult::Failed);
        report.test_case_id = case.id;
        reports.push(report);
    }
    shown.apply_reports(&shown.reports(ExecutionId::new(), reports.clone())).await;
    for report in [&reports[0], &reports[499]] {
        let case = shown.user.get_case(&report.test_case_id).await;
        assert_eq!(case.last_result(), TestResult::Failed);
    }
}

#[tokio::test]
async fn another_customers_events_change_nothing() {
    let shown = Shown::start().await;
    let stranger = shown.world.user().await.identity.customer;
    let mut tx = assay_database::begin(&shown.world.db).await.unwrap();
    let execution = ExecutionId::new();
    let report = shown.report(TestReportId::new(), 1, 1, TestResult::Passed);
    execution_changed(
        &mut tx,
        stranger,
        &shown.execution(execution, 1, ExecutionStatus::Completed),
    )
    .await
    .unwrap();
    reports_changed(&mut tx, stranger, &shown.reports(execution, vec![report])).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(shown.user.get_set(&shown.set.id).await.unwrap(), shown.set);
    assert_eq!(shown.project().await, shown.project);
    let case = shown.user.get_case(&shown.case.id).await;
    assert_eq!((case.last_result, case.execution_statistics), (None, Vec::new()));
    assert!(shown.user.get_plan(&shown.plan.id).await.test_reports.is_empty());
}

#[tokio::test]
async fn events_of_the_execution_service_are_applied_from_nats() {
    let shown = Shown::start().await;
    let dir = assay_testkit::test_dir().unwrap().join(format!("nats-{}", uuid::Uuid::now_v7()));
    let server = assay_servers::Nats::start(&DataDir::lock(dir).unwrap(), None).await.unwrap();
    let cli = Cli::parse_from(["test", "--nats-url", server.url()]);
    let nats = Nats::connect(&cli.nats, "test").await.unwrap();

    // The publisher: an execution service with only an outbox.
    let schema = assay_events::migrations(&Migrator::with_migrations(Vec::new()));
    let database = TestDatabase::create("outbox", &schema).await.unwrap();
    let outbox = PgPool::connect_with(database.options).await.unwrap();
    let customer = shown.user.identity.customer;
    let [execution, report] = [ExecutionId::new(), ExecutionId::new()];
    let completed = shown.execution(execution, 2, ExecutionStatus::Completed);
    let finished = shown.report(TestReportId::new(), 1, 1, TestResult::Passed);
    let finished = shown.reports(execution, vec![finished]);
    let archived = EventType::Record(RecordKind::Execution, Action::Archived);
    let reports = EventType::Reports(ReportsAction::Finished);
    let ended = EventType::Execution(ExecutionAction::Completed);
    let other = "an event that the catalog ignores";
    let mut tx = assay_database::begin(&outbox).await.unwrap();
    for event in [
        Event::new(customer, execution, archived, &other),
        Event::new(customer, report, reports, &finished),
        Event::new(customer, execution, ended, &completed),
    ] {
        publish(&mut tx, &event.unwrap()).await.unwrap();
    }
    tx.commit().await.unwrap();

    let (stream, stop) = (Stream::of("execution"), Runtime::new("test").stopping());
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(Relay::new(outbox, nats.clone(), stream).run(stop.clone()));
    let db = shown.world.db.clone();
    tasks.spawn(Consumer::new("catalog", stream).run(db, nats, Reactions, stop.clone()));
    eventually("the end of the execution", async || {
        let project = shown.project().await;
        (project.overall_result() == TestResult::Failed).then_some(())
    })
    .await;
    let case = shown.user.get_case(&shown.case.id).await;
    assert_eq!(case.last_result(), TestResult::Passed);
    let set = shown.user.get_set(&shown.set.id).await.unwrap();
    assert_eq!(set.last_run_duration, "01:02:03");
    stop.cancel();
    tasks.join_all().await;
    server.stop().await.unwrap();
}

#[tokio::test]
async fn test_cases_without_a_finished_report_have_never_run() {
    let shown = Shown::start().await;
    let other = shown.user.case(&shown.project, "logout").await;
    let never_run =
        async || shown.user.filtered(Kind::TestCase, &shown.project.id, ListFilter::NeverRun).await;
    assert_eq!(never_run().await, [other.id.as_str(), shown.case.id.as_str()]);

    let report = shown.report(TestReportId::new(), 1, 1, TestResult::Passed);
    shown.apply_reports(&shown.reports(ExecutionId::new(), vec![report])).await;
    assert_eq!(never_run().await, [other.id.as_str()]);
}
