//! Reviewing test reports.

mod concurrent;
mod left;
mod order;
mod undo;

use anyhow::Result;
use assay_proto::{
    ReportStatus,
    execution::{TestReport, TestReportInput, UpdateTestReportRequest},
};
use assay_testkit::TestUser;
use serde_json::json;
use tonic::{Code, Status};

use crate::world::{World, fields, reason};

/// Creates a report with this result, or a running one without.
async fn report(world: &World, result: Option<&str>) -> Result<TestReport> {
    let execution = world.start().await?;
    if let Some(result) = result {
        let result = json!([{ "Identifier": "a", "Result": result, "DurationInSec": 1.5 }]);
        world.report(&execution.id, result).await?;
    }
    Ok(world.test_report(&execution.test_reports[0].id).await?)
}

fn change(
    world: &World,
    report: &TestReport,
    changes: serde_json::Value,
) -> UpdateTestReportRequest {
    let fields = changes.as_object().unwrap().keys().cloned().collect();
    let changes: TestReportInput = serde_json::from_value(changes).unwrap();
    UpdateTestReportRequest {
        project_id: world.project.clone(),
        test_case_id: report.test_case_id.clone(),
        test_plan_id: report.test_plan_id.clone(),
        id: report.id.clone(),
        data_version: None,
        changes: Some(changes),
        fields,
    }
}

async fn review(
    world: &World,
    user: &TestUser,
    request: UpdateTestReportRequest,
) -> Result<TestReport, Status> {
    Ok(world.reports().update_test_report(user.call(request)).await?.into_inner())
}

async fn reviewer(world: &World) -> TestUser {
    world.colleague("Read, Accept, Reject").await
}

#[tokio::test]
async fn a_review_changes_only_status_and_comment() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let user = reviewer(&world).await;
    let report = report(&world, Some("Failed")).await?;

    let changes = json!({ "Status": "Investigation", "Comment": "flaky network?" });
    let reviewed = review(&world, &user, change(&world, &report, changes)).await?;

    let mut expected = report.clone();
    expected.set_status(ReportStatus::Investigation);
    expected.comment = Some("flaky network?".to_owned());
    expected.data_version.clone_from(&reviewed.data_version);
    expected.reviewed_by.clone_from(&reviewed.reviewed_by);
    expected.review_time = reviewed.review_time;
    assert!(reviewed.reviewed_by.is_some() && reviewed.review_time.is_some());
    assert_eq!(reviewed, expected);
    assert_ne!(reviewed.data_version, report.data_version);
    assert_eq!(world.test_report(&report.id).await?, reviewed);

    for status in ["Accepted", "Rejected", "InReview"] {
        let next = review(&world, &user, change(&world, &report, json!({ "Status": status })));
        let next = next.await?;
        assert_eq!(serde_json::to_value(&next)?["Status"], status);
        assert_eq!(next.comment.as_deref(), Some("flaky network?"));
    }
    let cleared = change(&world, &report, json!({ "Comment": null }));
    let cleared = review(&world, &user, cleared).await?;
    assert_eq!((cleared.comment, cleared.status), (None, ReportStatus::InReview.into()));
    Ok(())
}

#[tokio::test]
async fn a_review_is_published() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let user = reviewer(&world).await;
    let report = report(&world, Some("Failed")).await?;
    review(&world, &user, change(&world, &report, json!({ "Status": "Accepted" }))).await?;

    let events = world.events().await?;

    let last = |subject: &str| events.iter().rfind(|(of, _)| of == subject).unwrap();
    let (finished, reviewed) = (last("test_report.finished"), events.last().unwrap());
    assert_eq!(reviewed.0, "test_report.reviewed");
    assert_eq!(reviewed.1["Action"], "Reviewed");
    let mut expected = finished.1["Reports"][0].clone();
    expected["Status"] = json!("Accepted");
    expected["Revision"] = json!(expected["Revision"].as_i64().unwrap() + 1);
    assert_eq!(reviewed.1["Reports"], json!([expected]));
    for same in ["ExecutionId", "ProjectId", "TestSetId", "SoftwareName", "SoftwareIdentifier"] {
        assert_eq!(reviewed.1[same], finished.1[same], "{same}");
    }
    Ok(())
}

#[tokio::test]
async fn accepting_needs_accept_and_rejecting_needs_reject() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let accepts = world.colleague("Read, Accept").await;
    let rejects = world.colleague("Read, Reject").await;
    let report = report(&world, Some("Passed")).await?;
    for (user, status, allowed) in [
        (&accepts, "Accepted", true),
        (&accepts, "Rejected", false),
        (&rejects, "Rejected", true),
        (&rejects, "Accepted", false),
        (&accepts, "Investigation", true),
        (&rejects, "Investigation", true),
        (&accepts, "InReview", true),
        (&rejects, "InReview", true),
        // A user with all permissions except those for reviews.
        (&world.user, "InReview", false),
    ] {
        let reviewed = change(&world, &report, json!({ "Status": status }));
        let reviewed = review(&world, user, reviewed).await;
        match reviewed {
            Ok(_) => assert!(allowed, "{status} was allowed"),
            Err(refused) => {
                assert!(!allowed, "{status}: {refused:?}");
                assert_eq!(refused.code(), Code::PermissionDenied);
            }
        }
    }
    // Changing the comment of an accepted report needs the permission to accept.
    let accepted = change(&world, &report, json!({ "Status": "Accepted" }));
    review(&world, &accepts, accepted).await?;
    let comment = change(&world, &report, json!({ "Comment": "no" }));
    let refused = review(&world, &rejects, comment.clone()).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    review(&world, &accepts, comment).await?;
    Ok(())
}

#[tokio::test]
async fn only_finished_reports_can_be_reviewed() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let user = reviewer(&world).await;
    let running = report(&world, None).await?;
    let accepted = json!({ "Status": "Accepted" });
    let refused = review(&world, &user, change(&world, &running, accepted.clone())).await;
    assert_eq!(reason(&refused.unwrap_err()), "report_not_finished");

    let canceled = report(&world, Some("Passed")).await?;
    sqlx::query("update test_report set status = 'Canceled' where id::text = $1")
        .bind(&canceled.id)
        .execute(&world.db)
        .await?;
    let refused = review(&world, &user, change(&world, &canceled, accepted.clone())).await;
    assert_eq!(reason(&refused.unwrap_err()), "report_canceled");

    // Failures of engines can be reviewed.
    let failed = report(&world, Some("Error")).await?;
    assert_eq!(failed.status(), ReportStatus::EngineExecutionFailure);
    let comment = json!({ "Status": "EngineExecutionFailure", "Comment": "disk full" });
    let commented = review(&world, &user, change(&world, &failed, comment)).await?;
    assert_eq!(commented.status(), ReportStatus::EngineExecutionFailure);
    assert!(review(&world, &user, change(&world, &failed, accepted)).await.is_ok());
    Ok(())
}

#[tokio::test]
async fn invalid_reviews_are_rejected() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let user = reviewer(&world).await;
    let report = report(&world, Some("Passed")).await?;
    for (changes, field) in [
        (json!({ "Status": "Running" }), "Status"),
        (json!({ "Status": "NotExecuted" }), "Status"),
        (json!({ "Status": "Canceled" }), "Status"),
        (json!({ "Status": "EngineExecutionFailure" }), "Status"),
        (json!({ "Status": "Accepted", "Comment": "\0" }), "Comment"),
        (json!({ "Status": "Accepted", "Comment": "x".repeat((64 << 10) + 1) }), "Comment"),
    ] {
        let refused = review(&world, &user, change(&world, &report, changes)).await.unwrap_err();
        assert_eq!(fields(&refused), [field]);
    }
    assert_eq!(world.test_report(&report.id).await?, report);
    Ok(())
}

#[tokio::test]
async fn one_of_many_concurrent_reviews_of_a_version_succeeds() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let user = reviewer(&world).await;
    let report = report(&world, Some("Passed")).await?;
    let request = UpdateTestReportRequest {
        data_version: Some(report.data_version.clone()),
        ..change(&world, &report, json!({ "Status": "Accepted" }))
    };
    let reviews = (0..20).map(|_| review(&world, &user, request.clone()));

    let outcomes = futures::future::join_all(reviews).await;

    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    for refused in outcomes.into_iter().filter_map(Result::err) {
        assert_eq!(reason(&refused), "stale_data_version");
    }
    Ok(())
}

#[tokio::test]
async fn reports_of_other_projects_and_customers_cannot_be_reviewed() -> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1)]).await?;
    let user = reviewer(&world).await;
    let report = report(&world, Some("Passed")).await?;
    let request = change(&world, &report, json!({ "Status": "Accepted" }));
    for wrong in [
        UpdateTestReportRequest { project_id: world.set.clone(), ..request.clone() },
        UpdateTestReportRequest { test_case_id: world.set.clone(), ..request.clone() },
        UpdateTestReportRequest { test_plan_id: world.set.clone(), ..request.clone() },
        UpdateTestReportRequest { id: world.set.clone(), ..request.clone() },
    ] {
        let missing = review(&world, &user, wrong).await.unwrap_err();
        assert_eq!(missing.code(), Code::NotFound);
    }
    let stranger = world.stranger_who("Read, Accept, Reject").await;
    let hidden = review(&world, &stranger, request).await.unwrap_err();
    assert_eq!(hidden.code(), Code::NotFound);
    Ok(())
}
