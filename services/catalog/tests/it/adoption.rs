//! Adoption of test cases from reports of test tools.

use std::{pin::pin, time::Instant};

use assay_catalog::reactions::{execution_changed, reports_changed};
use assay_proto::{
    Classification, ClassificationFilter, ExecutionId, ExecutionStatus, Label, Link, PlanStatus,
    TestReportId, TestResult, catalog::*,
};
use assay_testkit::waits_for_lock;
use futures::stream;

use crate::{
    shown::Shown,
    user::User,
    world::{Answer, World, collect_snapshot, fault, invalid_fields, listed, target},
};

fn reported(identifiers: impl IntoIterator<Item = String>) -> Vec<ReportedTestCase> {
    let named = |identifier: String| ReportedTestCase {
        name: format!("Test {identifier}"),
        identifier,
        ..ReportedTestCase::default()
    };
    identifiers.into_iter().map(named).collect()
}

async fn adopt(user: &User, set: &TestSet, cases: Vec<ReportedTestCase>) -> Answer<Snapshot> {
    let mut parts: Vec<_> = cases
        .chunks(1000)
        .map(|cases| AdoptTestCasesRequest { test_cases: cases.to_vec(), ..Default::default() })
        .collect();
    parts.push(AdoptTestCasesRequest { last: true, ..Default::default() });
    parts.insert(0, AdoptTestCasesRequest { target: Some(target(set)), ..Default::default() });
    let request = user.call(stream::iter(parts));
    collect_snapshot(user.snapshots().adopt_test_cases(request).await?.into_inner()).await
}

fn identifiers(snapshot: &Snapshot) -> Vec<&str> {
    snapshot.test_cases.iter().map(|case| case.identifier.as_str()).collect()
}

#[tokio::test]
async fn adoption_creates_new_cases_and_adds_them_to_the_set() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let [known, unready] =
        [user.case(&project, "known").await, user.case(&project, "unready").await];
    let plan = user.ready_plan(&known).await;
    user.create_plan(&unready, TestPlanInput::default()).await.unwrap();
    let set = user.set(&project, &[&known]).await;

    let names = ["new::b", "known", "new::a", "unready", "known"].map(String::from);
    let snapshot = adopt(&user, &set, reported(names)).await.unwrap();
    assert_eq!(identifiers(&snapshot), ["new::b", "known", "new::a", "unready"]);
    assert_eq!(snapshot.test_set_name, "Nightly");
    assert_eq!(snapshot.test_cases[0].name, "Test new::b");
    assert_eq!(snapshot.test_cases[1].test_plan_id, plan.id);
    assert_eq!(snapshot.test_cases[1].name, "Case known");
    assert_eq!(snapshot.test_cases[3].test_plan_revision, 2);
    let members = user.get_set(&set.id).await.unwrap();
    let members: Vec<_> = members.test_cases.iter().map(|case| case.identifier.as_str()).collect();
    assert_eq!(members, ["known", "new::b", "new::a", "unready"]);
    for case in [&snapshot.test_cases[0].id, &unready.id] {
        let case = user.get_case(case).await;
        assert_eq!(case.last_plan_status(), PlanStatus::ReadyForExecution);
    }
    let events = world.events().await.into_iter().skip(7);
    let events: Vec<_> = events
        .map(|(noun, action, data)| {
            let records = data["Records"].as_array().map(Vec::len);
            (format!("{noun} {action}"), records)
        })
        .collect();
    let expected = [
        ("test_cases created", Some(2)),
        ("test_plans created", Some(3)),
        ("test_set changed", None),
    ];
    assert_eq!(events, expected.map(|(event, records)| (event.to_owned(), records)));
    let refused = user
        .update_plan(
            &known,
            &plan,
            TestPlanInput { instances: Some(3), ..Default::default() },
            &["Instances"],
        )
        .await;
    assert_eq!(fault(refused), "test_plan_frozen");
}

#[tokio::test]
async fn a_repeated_adoption_changes_nothing() {
    let world = World::start().await;
    let user = world.user().await;
    let set = user.set(&user.project().await, &[]).await;
    let cases = || reported((0..50).map(|number| format!("case-{number}")));
    let first = adopt(&user, &set, cases()).await.unwrap();
    let members = user.get_set(&set.id).await.unwrap();
    let events = world.events().await.len();
    assert_eq!(adopt(&user, &set, cases()).await.unwrap(), first);
    assert_eq!(user.get_set(&set.id).await.unwrap(), members);
    assert_eq!(world.events().await.len(), events);
}

#[tokio::test]
async fn concurrent_adoptions_create_each_case_once() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let [one, two] = [user.set(&project, &[]).await, user.set(&project, &[]).await];
    let attempts = (0..12).map(|attempt| {
        let set = if attempt % 3 == 0 { &one } else { &two };
        let mut names: Vec<_> = (0..100).map(|number| format!("case-{number}")).collect();
        if attempt % 2 == 0 {
            names.reverse();
        }
        adopt(&user, set, reported(names))
    });
    for snapshot in futures::future::join_all(attempts).await {
        assert_eq!(snapshot.unwrap().test_cases.len(), 100);
    }
    let (cases, plans): (i64, i64) =
        sqlx::query_as("select (select count(*) from test_case), (select count(*) from test_plan)")
            .fetch_one(&world.db)
            .await
            .unwrap();
    assert_eq!((cases, plans), (100, 100));
    for set in [&one, &two] {
        assert_eq!(user.get_set(&set.id).await.unwrap().test_cases.len(), 100);
    }
}

/// Uploads lock a test set before its test cases, and the events of several executions the other way round.
#[tokio::test]
async fn an_adoption_waits_for_the_events_of_executions_of_its_project() {
    let shown = Shown::start().await;
    let (customer, execution) = (shown.user.identity.customer, ExecutionId::new());
    let report = shown.report(TestReportId::new(), 1, 1, TestResult::Passed);
    let mut tx = assay_database::begin(&shown.world.db).await.unwrap();
    // Consumers of events do not wait for the detection of a deadlock.
    sqlx::query("set local lock_timeout = '100ms'").execute(&mut *tx).await.unwrap();
    reports_changed(&mut tx, customer, &shown.reports(execution, vec![report])).await.unwrap();
    let reported = reported([shown.case.identifier.clone()]);
    let mut adopted = pin!(adopt(&shown.user, &shown.set, reported));
    waits_for_lock(&shown.world.db, adopted.as_mut()).await.unwrap();

    let completed = shown.execution(execution, 1, ExecutionStatus::Completed);
    execution_changed(&mut tx, customer, &completed).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(identifiers(&adopted.await.unwrap()), [shown.case.identifier.as_str()]);
}

#[tokio::test]
async fn a_new_case_is_created_for_the_identifier_of_an_archived_case() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let old = user.case(&project, "login").await;
    user.archive_case(&old).await;
    let set = user.set(&project, &[]).await;
    let snapshot = adopt(&user, &set, reported(["login".to_owned()])).await.unwrap();
    assert_ne!(snapshot.test_cases[0].id, old.id);
}

#[tokio::test]
async fn invalid_reported_cases_are_rejected_with_their_fields() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let set = user.set(&project, &[]).await;
    let wrong = ["fine", " ", "a\0"].map(String::from);
    let fields = invalid_fields(adopt(&user, &set, reported(wrong)).await);
    assert_eq!(fields, ["TestCases/1/Identifier", "TestCases/2/Identifier", "TestCases/2/Name"]);
    assert!(adopt(&user, &set, Vec::new()).await.unwrap().test_cases.is_empty());
    let whole = AdoptTestCasesRequest {
        target: Some(target(&set)),
        test_cases: reported(["a".to_owned()]),
        last: true,
    };
    let without_target = AdoptTestCasesRequest { target: None, ..whole.clone() };
    let broken_off = AdoptTestCasesRequest { last: false, ..whole };
    for request in [without_target, broken_off] {
        let request = user.call(stream::iter([request]));
        assert_eq!(fault(user.snapshots().adopt_test_cases(request).await), "malformed");
    }
    assert_eq!(user.get_set(&set.id).await.unwrap(), set);
}

#[tokio::test]
async fn a_report_of_3_400_new_tests_is_adopted_within_5_seconds() {
    let world = World::start().await;
    let user = world.user().await;
    let set = user.set(&user.project().await, &[]).await;
    let cases = reported((0..3400).map(|number| format!("com.example.Suite.case_{number}")));
    let started = Instant::now();
    let snapshot = adopt(&user, &set, cases).await.unwrap();
    let elapsed = started.elapsed();
    assert_eq!(snapshot.test_cases.len(), 3400);
    // The goal is half a second; the limit allows for slow machines.
    assert!(elapsed.as_secs() < 5, "elapsed: {elapsed:?}");
}

#[tokio::test]
async fn a_test_with_another_identifier_by_the_current_rule_keeps_its_case() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let [adds, pays] = [user.case(&project, "adds").await, user.case(&project, "pays").await];
    let set = user.set(&project, &[]).await;
    let case = |identifier: &str, former: &str| ReportedTestCase {
        identifier: identifier.to_owned(),
        name: identifier.to_owned(),
        former_identifier: Some(former.to_owned()),
        ..ReportedTestCase::default()
    };
    let cases =
        vec![case("Cart.adds", "adds"), case("Cart.pays", "pays"), case("Till.pays", "pays")];
    for _ in 0..2 {
        let snapshot = adopt(&user, &set, cases.clone()).await.unwrap();
        let ids: Vec<&str> = snapshot.test_cases.iter().map(|case| case.id.as_str()).collect();
        assert_eq!(identifiers(&snapshot), ["Cart.adds", "Cart.pays", "Till.pays"]);
        assert_eq!(ids[0], adds.id);
        assert!(!ids.contains(&pays.id.as_str()), "two tests that shared a case get their own");
    }
}

#[tokio::test]
async fn results_under_an_alias_belong_to_the_renamed_case() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let [old, other] = [user.case(&project, "pays").await, user.case(&project, "ships").await];
    let set = user.set(&project, &[]).await;
    let replace = async |case: &TestCase, aliases: &[&str]| {
        let aliases = aliases.iter().map(|alias| (*alias).to_owned()).collect();
        let request = ReplaceAliasesRequest {
            project_id: project.id.clone(),
            id: case.id.clone(),
            aliases: Some(TestCaseAliasesInput { aliases }),
        };
        user.cases().replace_aliases(user.call(request)).await
    };

    let aliases = replace(&old, &["pays by card", "charges", "charges"]).await.unwrap();
    assert_eq!(aliases.into_inner().aliases, ["charges", "pays by card"]);
    let snapshot =
        adopt(&user, &set, reported(["pays by card", "new"].map(String::from))).await.unwrap();
    assert_eq!(identifiers(&snapshot), ["pays by card", "new"]);
    assert_eq!((&snapshot.test_cases[0].id, &snapshot.test_cases[0].name), (&old.id, &old.name));
    let own = snapshot.test_cases.iter().map(|case| case.own_identifier.as_deref());
    assert_eq!(own.collect::<Vec<_>>(), [Some("pays"), None]);
    // Two tests of one report are two cases.
    let names = ["charges", "pays", "pays by card"].map(String::from);
    let snapshot = adopt(&user, &set, reported(names)).await.unwrap();
    let ids: Vec<_> = snapshot.test_cases.iter().map(|case| &case.id).collect();
    assert_eq!(ids[1], &old.id);
    assert!(ids[0] != ids[1] && ids[2] != ids[1] && ids[0] != ids[2]);

    let taken = replace(&other, &["pays"]).await.map(tonic::Response::into_inner);
    assert_eq!(invalid_fields(taken), ["Aliases/0"]);
    replace(&old, &["sends"]).await.unwrap();
    assert_eq!(fault(replace(&other, &["sends"]).await), "already_exists");
    assert_eq!(replace(&old, &[]).await.unwrap().into_inner().aliases, [""; 0]);
}

#[tokio::test]
async fn a_test_case_belongs_where_its_last_report_puts_it() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let known = user.case(&project, "pays").await;
    let set = user.set(&project, &[]).await;
    let in_suite = |identifier: &str, suite: &str, tag: &str| ReportedTestCase {
        identifier: identifier.to_owned(),
        name: identifier.to_owned(),
        classification: Some(Classification {
            suites: vec!["Shop".to_owned(), suite.to_owned()],
            labels: vec![Label { name: "tag".to_owned(), value: tag.to_owned() }],
            links: vec![Link {
                kind: "issue".to_owned(),
                target: format!("https://tracker.example.com/browse/{tag}-7/"),
            }],
        }),
        ..ReportedTestCase::default()
    };
    let suites = async || {
        let case = user.get_case(&known.id).await;
        (case.suites, case.labels.len(), case.data_version)
    };

    let cases = vec![in_suite("pays", "Cart", "smoke"), in_suite("ships", "Depot", "slow")];
    adopt(&user, &set, cases.clone()).await.unwrap();
    let (shown, labels, version) = suites().await;
    assert_eq!((shown, labels), (vec!["Shop".to_owned(), "Cart".to_owned()], 1));
    assert_eq!(version, known.data_version, "a report is not a change by a user");
    // A tool that reports no suites does not remove them.
    adopt(&user, &set, reported(["pays".to_owned()])).await.unwrap();
    adopt(&user, &set, cases).await.unwrap();
    assert_eq!(suites().await.0, ["Shop", "Cart"]);
    adopt(&user, &set, vec![in_suite("pays", "Till", "smoke")]).await.unwrap();
    assert_eq!(suites().await.0, ["Shop", "Till"]);

    let found = async |filter: ClassificationFilter| {
        let request = ListTestCasesRequest {
            project_id: project.id.clone(),
            classification: Some(filter),
            ..ListTestCasesRequest::default()
        };
        let list = user.cases().list_test_cases(user.call(request)).await;
        let (cases, _) = listed(list).await.unwrap();
        let mut found: Vec<_> = cases.into_iter().map(|case| case.identifier).collect();
        found.sort();
        found
    };
    let tag = |tag: &str| ClassificationFilter { tag: Some(tag.to_owned()), ..Default::default() };
    let link =
        |link: &str| ClassificationFilter { link: Some(link.to_owned()), ..Default::default() };
    let suite =
        |suite: &str| ClassificationFilter { suite: Some(suite.to_owned()), ..Default::default() };
    for (filter, expected) in [
        (tag("smoke"), &["pays"][..]),
        (tag("tag:slow"), &["ships"]),
        (tag("smok"), &[]),
        (link("slow-7"), &["ships"]),
        (link("https://tracker.example.com/browse/smoke-7/"), &["pays"]),
        (suite("Shop"), &["pays", "ships"]),
        (suite("Cart"), &[]),
        (ClassificationFilter { tag: Some("slow".to_owned()), ..suite("Depot") }, &["ships"]),
        (ClassificationFilter { tag: Some("slow".to_owned()), ..suite("Till") }, &[]),
        (suite(" "), &["pays", "ships"]),
    ] {
        assert_eq!(found(filter.clone()).await, expected, "{filter:?}");
    }
}
