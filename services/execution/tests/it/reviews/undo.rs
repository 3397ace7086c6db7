//! Reviews that are taken back, with the known failures that they have made.

use anyhow::Result;
use assay_proto::{
    Batch, ReportStatus,
    execution::{
        KnownFailure, ListKnownFailuresRequest, MuteInput, ReviewInput, TestReportEntry,
        UndoReviewRequest,
    },
};
use assay_testkit::TestUser;
use futures::TryStreamExt;
use serde_json::json;
use tonic::{Code, Status};

use crate::{
    changes::{failed, reports, run, summary},
    known_failures::{accepted, in_days, review, reviewer},
    world::World,
};

async fn undo(world: &World, user: &TestUser, execution: &str, id: &str) -> Result<(), Status> {
    let request = UndoReviewRequest {
        project_id: None,
        execution_id: execution.to_owned(),
        id: id.to_owned(),
    };
    world.reports().undo_review(user.call(request)).await.map(drop)
}

async fn known(world: &World) -> Result<Vec<KnownFailure>, Status> {
    let request =
        ListKnownFailuresRequest { project_id: world.project.clone(), ..Default::default() };
    let known = world.known_failures().list_known_failures(world.user.call(request)).await?;
    let batches: Vec<_> = known.into_inner().try_collect().await?;
    Ok(batches.iter().flat_map(|batch| batch.parse().unwrap()).collect())
}

#[tokio::test]
async fn a_review_is_taken_back_with_what_it_has_made_known() -> Result<()> {
    let world = World::new().await?;
    let user = reviewer(&world).await;
    let execution = run(&world, "main", json!([failed("a", "lost"), failed("b", "gone")])).await?;
    let before = reports(&world, &execution).await?;
    let muting = |days, ticket: &str, reports: &[&str]| ReviewInput {
        reports: reports.iter().map(|id| (*id).to_owned()).collect(),
        ticket: Some(ticket.to_owned()),
        known: Some(MuteInput { every_case: false, muted_until: Some(in_days(days)) }),
        ..accepted()
    };
    let (a, b) = (before[0].id.as_str(), before[1].id.as_str());

    // The first review makes one cause known, and the second one prolongs it and adds the other.
    let first = review(&world, &execution, muting(10, "SHOP-1", &[a])).await?;
    let once = (reports(&world, &execution).await?, known(&world).await?);
    let second = review(&world, &execution, muting(20, "SHOP-2", &[a, b])).await?;
    assert_eq!(second.known_failures, 2);
    assert_eq!(summary(&world, &execution).await?.changes.unwrap().muted, 2);

    undo(&world, &user, &execution.id, &second.review_id).await?;
    let restored = (reports(&world, &execution).await?, known(&world).await?);
    for (restored, expected) in restored.0.iter().zip(&once.0) {
        let facts = |one: &TestReportEntry| {
            let texts = (one.ticket.clone(), one.comment.clone(), one.reviewed_by.clone());
            (one.status, one.is_muted, texts, one.review_time)
        };
        assert_eq!(facts(restored), facts(expected));
    }
    assert_eq!(restored.1.len(), 1);
    let (known_now, known_once) = (&restored.1[0], &once.1[0]);
    assert_eq!(
        (&known_now.ticket, known_now.muted_until),
        (&known_once.ticket, known_once.muted_until)
    );
    assert_eq!(world.differences().await?, 0);

    // The judgement of the first review stands, and its review cannot be named any more.
    for id in [&second.review_id, &first.review_id, &execution.id] {
        let refused = undo(&world, &user, &execution.id, id).await.unwrap_err();
        assert_eq!(refused.code(), Code::NotFound, "{id}");
    }
    Ok(())
}

#[tokio::test]
async fn a_review_is_not_taken_back_over_a_later_one_or_without_the_permission() -> Result<()> {
    let world = World::new().await?;
    let user = reviewer(&world).await;
    let execution = run(&world, "main", json!([failed("a", "lost"), failed("b", "gone")])).await?;
    let entries = reports(&world, &execution).await?;
    let of = |entries: &[TestReportEntry], status: ReportStatus| {
        let reports = entries.iter().map(|entry| entry.id.clone()).collect();
        ReviewInput { reports, status: status.into(), ..ReviewInput::default() }
    };
    let both = review(&world, &execution, of(&entries, ReportStatus::Accepted)).await?;
    review(&world, &execution, of(&entries[..1], ReportStatus::Rejected)).await?;

    let rejecter = world.colleague("Read, Reject").await;
    let refused = undo(&world, &rejecter, &execution.id, &both.review_id).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    let stranger = world.stranger_who("Read, Accept, Reject").await;
    let refused = undo(&world, &stranger, &execution.id, &both.review_id).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    undo(&world, &user, &execution.id, &both.review_id).await?;
    let statuses: Vec<_> =
        reports(&world, &execution).await?.iter().map(TestReportEntry::status).collect();
    assert_eq!(statuses, [ReportStatus::Rejected, ReportStatus::InReview]);
    assert_eq!(world.differences().await?, 0);
    Ok(())
}
