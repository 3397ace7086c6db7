//! Known failures: causes that are muted in later executions until a date, and reviews of many
//! failures at once.

mod model;

use anyhow::Result;
use assay_proto::{
    Batch, ReportStatus, TestResult, Timestamp,
    execution::{
        CreateKnownFailureInput, CreateKnownFailureRequest, DeleteKnownFailureRequest, Execution,
        KnownFailure, KnownFailureInput, ListKnownFailuresRequest, ListMatchesRequest, MuteInput,
        ReviewInput, ReviewTestReportsRequest, ReviewedTestReports, UpdateKnownFailureRequest,
    },
};
use assay_testkit::TestUser;
use chrono::{TimeDelta, Utc};
use futures::TryStreamExt;
use serde_json::json;
use tonic::{Code, Status};

use crate::{
    changes::{failed, passed, reports, run, summary},
    world::{World, fields},
};

#[expect(clippy::disallowed_methods, reason = "a client has the clock of its machine")]
pub(crate) fn in_days(days: i64) -> Timestamp {
    Timestamp(Utc::now() + TimeDelta::days(days))
}

/// Returns a user of the customer who reviews.
pub(crate) async fn reviewer(world: &World) -> TestUser {
    world.colleague("Login, Read, Accept, Reject").await
}

pub(crate) async fn create(
    world: &World,
    input: CreateKnownFailureInput,
) -> Result<KnownFailure, Status> {
    let request =
        CreateKnownFailureRequest { project_id: world.project.clone(), known_failure: Some(input) };
    let request = reviewer(world).await.call(request);
    let created = world.known_failures().create_known_failure(request).await?;
    Ok(created.into_inner())
}

async fn known(world: &World) -> Result<Vec<KnownFailure>, Status> {
    let request =
        ListKnownFailuresRequest { project_id: world.project.clone(), ..Default::default() };
    let known = world.known_failures().list_known_failures(world.user.call(request)).await?;
    let batches: Vec<_> = known.into_inner().try_collect().await?;
    Ok(batches.iter().flat_map(|batch| batch.parse().unwrap()).collect())
}

pub(crate) async fn review(
    world: &World,
    execution: &Execution,
    input: ReviewInput,
) -> Result<ReviewedTestReports, Status> {
    let request = ReviewTestReportsRequest {
        project_id: None,
        execution_id: execution.id.clone(),
        review: Some(input),
    };
    let request = reviewer(world).await.call(request);
    let reviewed = world.reports().review_test_reports(request).await?;
    Ok(reviewed.into_inner())
}

pub(crate) fn accepted() -> ReviewInput {
    let status = ReportStatus::Accepted.into();
    ReviewInput { status, ticket: Some("SHOP-1".to_owned()), ..Default::default() }
}

/// Returns the number of muted test cases, and of failing ones that need a review.
async fn open_points(world: &World, execution: &Execution) -> Result<(i32, i32)> {
    let changes = summary(world, execution).await?.changes.unwrap();
    Ok((changes.muted, changes.unreviewed))
}

#[tokio::test]
async fn a_known_failure_is_muted_in_later_executions_until_its_date() -> Result<()> {
    let world = World::new().await?;
    let results = || json!([failed("a", "lost"), failed("b", "lost"), passed("c")]);
    let first = run(&world, "main", results()).await?;
    assert_eq!(open_points(&world, &first).await?, (0, 2));
    let entry = reports(&world, &first).await?.remove(0);
    let input = CreateKnownFailureInput {
        fingerprint: entry.fingerprint.clone(),
        test_case_id: Some(entry.test_case_id.clone()),
        ticket: Some("SHOP-1".to_owned()),
        muted_until: Some(in_days(30)),
        ..Default::default()
    };
    let created = create(&world, input.clone()).await?;
    assert_eq!((created.headline.as_str(), created.ticket.as_str()), ("lost", "SHOP-1"));
    assert_eq!(open_points(&world, &first).await?, (0, 2), "only later executions are muted");

    let second = run(&world, "main", results()).await?;

    assert_eq!(open_points(&world, &second).await?, (1, 1), "b is another test case");
    let muted = reports(&world, &second).await?.remove(0);
    assert_eq!((muted.is_muted, muted.ticket.as_str()), (true, "SHOP-1"));
    assert_eq!(known(&world).await?[0].last_seen, second.request_time);
    let other = run(&world, "main", json!([failed("a", "another cause")])).await?;
    assert_eq!(open_points(&world, &other).await?, (0, 1));
    run(&world, "main", json!([failed("b", "lost")])).await?;
    assert_eq!(known(&world).await?[0].last_seen, second.request_time, "of this test and cause");

    let update = UpdateKnownFailureRequest {
        project_id: world.project.clone(),
        id: created.id.clone(),
        data_version: Some(created.data_version),
        changes: Some(KnownFailureInput { muted_until: Some(in_days(-1)), ..Default::default() }),
        fields: vec!["MutedUntil".to_owned()],
    };
    let reviewer = reviewer(&world).await;
    let ended = world.known_failures().update_known_failure(reviewer.call(update)).await?;
    assert_eq!(ended.into_inner().ticket, "SHOP-1", "other fields are kept");
    let third = run(&world, "main", results()).await?;
    assert_eq!(open_points(&world, &third).await?, (0, 2));
    assert_eq!(open_points(&world, &second).await?, (1, 1), "what was muted stays muted");

    assert_eq!(create(&world, input).await.unwrap_err().code(), Code::AlreadyExists);
    let (project_id, id) = (world.project.clone(), created.id);
    let delete = DeleteKnownFailureRequest { project_id, id };
    world.known_failures().delete_known_failure(reviewer.call(delete)).await?;
    assert!(known(&world).await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn matches_show_what_a_known_failure_of_every_case_would_mute() -> Result<()> {
    let world = World::new().await?;
    let results = || json!([failed("a", "lost"), failed("b", "lost"), failed("c", "slow")]);
    run(&world, "main", results()).await?;
    let execution = run(&world, "main", results()).await?;
    let fingerprint = reports(&world, &execution).await?.remove(0).fingerprint;

    let (project_id, days) = (world.project.clone(), None);
    let request =
        ListMatchesRequest { project_id, fingerprint: fingerprint.clone(), days, page: None };
    let matches = world.known_failures().list_matches(world.user.call(request)).await?;
    let batches: Vec<_> = matches.into_inner().try_collect().await?;
    let matches: Vec<_> = batches.iter().flat_map(|batch| batch.parse().unwrap()).collect();
    let shown: Vec<_> =
        matches.iter().map(|one| (one.test_case_identifier.as_str(), one.executions)).collect();
    assert_eq!(shown, [("a", 2), ("b", 2)]);

    let input = CreateKnownFailureInput {
        fingerprint,
        every_case: true,
        muted_until: Some(in_days(1)),
        ..Default::default()
    };
    create(&world, input).await?;
    let later = run(&world, "main", json!([failed("z", "lost"), failed("c", "slow")])).await?;
    assert_eq!(open_points(&world, &later).await?, (1, 1));
    Ok(())
}

#[tokio::test]
async fn invalid_known_failures_are_refused_with_reasons() -> Result<()> {
    let world = World::new().await?;
    let execution = run(&world, "main", json!([failed("a", "lost"), failed("b", "slow")])).await?;
    let entries = reports(&world, &execution).await?;
    let valid = CreateKnownFailureInput {
        fingerprint: entries[0].fingerprint.clone(),
        every_case: true,
        muted_until: Some(in_days(90)),
        ..Default::default()
    };
    let other_case = Some(entries[1].test_case_id.clone());
    for (field, input) in [
        ("Fingerprint", CreateKnownFailureInput { fingerprint: "x".to_owned(), ..valid.clone() }),
        ("Fingerprint", CreateKnownFailureInput { fingerprint: "0".repeat(32), ..valid.clone() }),
        ("TestCaseId", CreateKnownFailureInput { every_case: false, ..valid.clone() }),
        (
            "TestCaseId",
            CreateKnownFailureInput { test_case_id: other_case.clone(), ..valid.clone() },
        ),
        (
            "TestCaseId",
            CreateKnownFailureInput {
                every_case: false,
                test_case_id: other_case,
                ..valid.clone()
            },
        ),
        ("Ticket", CreateKnownFailureInput { ticket: Some("x".repeat(256)), ..valid.clone() }),
        ("MutedUntil", CreateKnownFailureInput { muted_until: Some(in_days(91)), ..valid.clone() }),
        ("MutedUntil", CreateKnownFailureInput { muted_until: Some(in_days(-1)), ..valid.clone() }),
        ("MutedUntil", CreateKnownFailureInput { muted_until: None, ..valid }),
    ] {
        assert_eq!(fields(&create(&world, input).await.unwrap_err()), [field]);
    }
    Ok(())
}

#[tokio::test]
async fn many_failures_are_reviewed_at_once_and_known_from_then_on() -> Result<()> {
    let world = World::new().await?;
    let cases: Vec<String> = (0..600).map(|nr| format!("t{nr:03}")).collect();
    let results = || {
        let mut results: Vec<_> = cases.iter().map(|case| failed(case, "lost")).collect();
        results.extend([failed("slow", "timeout"), passed("fine")]);
        json!(results)
    };
    let execution = run(&world, "main", results()).await?;
    let entries = reports(&world, &execution).await?;
    let lost = entries.iter().find(|entry| entry.headline == "lost").unwrap();
    let events = world.events().await?.len();

    let reviewed = review(
        &world,
        &execution,
        ReviewInput {
            fingerprint: Some(lost.fingerprint.clone()),
            comment: Some("the queue is down".to_owned()),
            known: Some(MuteInput { every_case: false, muted_until: Some(in_days(7)) }),
            ..accepted()
        },
    )
    .await?;

    assert_eq!((reviewed.reviewed, reviewed.known_failures), (600, 600));
    let events = world.events().await?.len() - events;
    assert_eq!(events, 602, "one for 500 reports, and one for each known failure");
    assert_eq!(open_points(&world, &execution).await?, (600, 1));
    let entry = reports(&world, &execution).await?.remove(0);
    assert_eq!(entry.status(), ReportStatus::Accepted);
    assert_eq!((entry.ticket.as_str(), entry.comment()), ("SHOP-1", "the queue is down"));
    let later = run(&world, "main", results()).await?;
    assert_eq!(open_points(&world, &later).await?, (600, 1));

    let all_passed = ReviewInput { result: Some(TestResult::Passed.into()), ..accepted() };
    assert_eq!(review(&world, &execution, all_passed).await?.reviewed, 1);
    Ok(())
}

#[tokio::test]
async fn a_review_mutes_only_what_is_known_completely_and_at_this_time() -> Result<()> {
    let world = World::new().await?;
    let variant = |cause: &str, variant: &str| {
        let mut result = failed("a", cause);
        result["Variant"] = json!(variant);
        result
    };
    let results =
        json!([variant("lost", "linux"), variant("slow", "windows"), failed("b", "lost")]);
    let execution = run(&world, "main", results).await?;
    let entries = reports(&world, &execution).await?;
    let lost = entries.iter().find(|entry| entry.headline == "lost").unwrap();
    let mute = async |fingerprint: &str, days| {
        let known = Some(MuteInput { every_case: false, muted_until: Some(in_days(days)) });
        let fingerprint = Some(fingerprint.to_owned());
        review(&world, &execution, ReviewInput { fingerprint, known, ..accepted() }).await?;
        Ok::<_, anyhow::Error>(open_points(&world, &execution).await?.0)
    };
    assert_eq!(mute(&lost.fingerprint, 7).await?, 1, "one test case also fails for another cause");
    let slow = "select encode(fingerprint, 'hex') from failure where headline = 'slow'";
    let slow: String = sqlx::query_scalar(slow).fetch_one(&world.db).await?;
    assert_eq!(mute(&slow, 7).await?, 2, "now both causes are known");
    Ok(())
}

#[tokio::test]
async fn a_review_of_several_reports_is_all_or_nothing() -> Result<()> {
    let world = World::new().await?;
    let (one, other) = (
        run(&world, "main", json!([failed("a", "lost"), failed("b", "lost")])).await?,
        run(&world, "main", json!([failed("a", "lost")])).await?,
    );
    let mut ids: Vec<_> = reports(&world, &one).await?.into_iter().map(|entry| entry.id).collect();
    let of = |reports| ReviewInput { reports, ..accepted() };
    let elsewhere = reports(&world, &other).await?.remove(0).id;
    let mixed = of([ids.clone(), vec![elsewhere]].concat());
    assert_eq!(fields(&review(&world, &one, mixed).await.unwrap_err()), ["Reports"]);
    assert_eq!(open_points(&world, &one).await?, (0, 2));
    let ended = MuteInput { every_case: false, muted_until: Some(in_days(-1)) };
    for (field, input) in [
        ("Reports", of(Vec::new())),
        ("Reports", ReviewInput { fingerprint: Some("0".repeat(32)), ..of(ids.clone()) }),
        ("Status", ReviewInput { status: ReportStatus::Running.into(), ..of(ids.clone()) }),
        ("Known/MutedUntil", ReviewInput { known: Some(MuteInput::default()), ..of(ids.clone()) }),
        ("Known/MutedUntil", ReviewInput { known: Some(ended), ..of(ids.clone()) }),
        ("Causes", ReviewInput { causes: vec!["x".to_owned()], ..of(ids.clone()) }),
    ] {
        assert_eq!(fields(&review(&world, &one, input).await.unwrap_err()), [field]);
    }
    let rejecter = world.colleague("Login, Read, Reject").await;
    let request = ReviewTestReportsRequest {
        project_id: None,
        execution_id: one.id.clone(),
        review: Some(of(ids.clone())),
    };
    let denied = world.reports().review_test_reports(rejecter.call(request)).await.unwrap_err();
    assert_eq!(denied.code(), Code::PermissionDenied);
    ids.truncate(1);
    assert_eq!(review(&world, &one, of(ids)).await?.reviewed, 1);
    assert_eq!(open_points(&world, &one).await?, (0, 1));
    Ok(())
}

#[tokio::test]
async fn a_project_has_a_limited_number_of_known_failures() -> Result<()> {
    let world = World::new().await?;
    let execution = run(&world, "main", json!([failed("a", "lost"), failed("b", "slow")])).await?;
    let [first, second] = &reports(&world, &execution).await?[..] else { panic!() };
    let known = |fingerprint: &str| CreateKnownFailureInput {
        fingerprint: fingerprint.to_owned(),
        muted_until: Some(in_days(1)),
        every_case: true,
        ..Default::default()
    };
    create(&world, known(&first.fingerprint)).await?;
    let others = "insert into known_failure (customer_id, id, project_id, fingerprint, headline,
                      ticket, comment, muted_until, created_by_id, created_by)
                  select customer_id, gen_random_uuid(), project_id, int4send(n), '', '', '',
                         now(), created_by_id, ''
                  from known_failure cross join generate_series(2, 10000) as n";
    world.change(others).await?;

    let refused = create(&world, known(&second.fingerprint)).await.unwrap_err();
    assert!(refused.message().contains("10000 known failures"), "{refused}");
    let until = Some(in_days(1));
    let mute = MuteInput { muted_until: until, ..Default::default() };
    let selection = vec![second.id.clone()];
    let input = ReviewInput { reports: selection, known: Some(mute), ..accepted() };
    let again = review(&world, &execution, input).await.unwrap_err();
    assert_eq!(again.message(), refused.message());
    assert_eq!(world.count("select count(*) from known_failure").await?, 10_000);
    Ok(())
}
