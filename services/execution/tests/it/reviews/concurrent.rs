//! Reviews of the same test reports by several users.

use std::{pin::pin, time::Duration};

use anyhow::{Result, bail};
use assay_database::begin;
use assay_proto::{
    ReportStatus,
    execution::{
        Execution, Failure, ListFailuresRequest, ReviewInput, SeenCause, SeenTestReport,
        TestReportEntry, UndoReviewRequest,
    },
};
use serde_json::json;
use tokio::time::interval;
use tonic::Code;

use crate::{
    causes,
    changes::{failed, reports, run},
    known_failures::{review, reviewer},
    world::{World, reason},
};

fn seen(entries: &[TestReportEntry]) -> Vec<SeenTestReport> {
    let seen = entries.iter().map(|entry| SeenTestReport {
        id: entry.id.clone(),
        data_version: entry.data_version.clone(),
    });
    seen.collect()
}

/// A review of these reports.
fn judged(entries: &[TestReportEntry], status: ReportStatus, ticket: &str) -> ReviewInput {
    ReviewInput {
        reports: entries.iter().map(|entry| entry.id.clone()).collect(),
        status: status.into(),
        ticket: Some(ticket.to_owned()),
        comment: Some("real bug".to_owned()),
        ..ReviewInput::default()
    }
}

async fn failures(world: &World) -> Result<Execution> {
    run(world, "main", json!([failed("a", "lost"), failed("b", "lost")])).await
}

#[tokio::test]
async fn a_review_of_reports_that_were_reviewed_since_is_refused_with_the_judgement() -> Result<()>
{
    let world = World::new().await?;
    let execution = failures(&world).await?;
    let first = reports(&world, &execution).await?;
    assert_eq!((&first[0].reviewed_by, first[0].review_time), (&None, None));
    let known =
        ReviewInput { seen: seen(&first), ..judged(&first[1..], ReportStatus::Rejected, "SHOP-1") };
    review(&world, &execution, known).await?;
    let reviewed = reports(&world, &execution).await?;
    assert!(reviewed[1].reviewed_by.is_some() && reviewed[1].review_time.is_some());
    assert_eq!(reviewed[0], first[0]);

    let cause = || ReviewInput {
        fingerprint: Some(first[0].fingerprint.clone()),
        reports: Vec::new(),
        ..judged(&first, ReportStatus::Accepted, "")
    };
    for late in [judged(&first, ReportStatus::Accepted, ""), cause()] {
        let refused = review(&world, &execution, ReviewInput { seen: seen(&first), ..late }).await;
        let refused = refused.unwrap_err();
        assert_eq!(reason(&refused), "stale_data_version");
        for part in ["“b” is Rejected by", "ticket SHOP-1", "comment “real bug”"] {
            assert!(refused.message().contains(part), "{part} in {}", refused.message());
        }
        assert_eq!(reports(&world, &execution).await?, reviewed, "all or none");
    }

    let others = judged(&first[..1], ReportStatus::Accepted, "");
    review(&world, &execution, ReviewInput { seen: seen(&first), ..others }).await?;
    review(&world, &execution, ReviewInput { seen: seen(&first[..1]), ..cause() })
        .await
        .expect_err("a was reviewed since");
    review(&world, &execution, cause()).await?;
    let last = reports(&world, &execution).await?;
    assert!(last.iter().all(|entry| entry.status() == ReportStatus::Accepted), "{last:?}");
    Ok(())
}

/// Returns the only cause of an execution.
async fn cause_of(world: &World, execution: &Execution) -> Result<Failure> {
    let execution_id = execution.id.clone();
    let request = ListFailuresRequest { execution_id, ..Default::default() };
    Ok(causes::failures(world, request).await?.remove(0))
}

/// A review of a whole cause as it was seen.
fn of_cause(cause: &Failure, status: ReportStatus, ticket: &str) -> ReviewInput {
    let (fingerprint, data_version) = (cause.fingerprint.clone(), cause.data_version.clone());
    ReviewInput {
        causes: vec![fingerprint.clone()],
        seen_causes: vec![SeenCause { fingerprint, data_version }],
        ..judged(&[], status, ticket)
    }
}

#[tokio::test]
async fn a_review_of_a_cause_that_was_judged_since_is_refused_with_the_judgement() -> Result<()> {
    let world = World::new().await?;
    let execution = failures(&world).await?;
    let seen = cause_of(&world, &execution).await?;
    let judgement = || of_cause(&seen, ReportStatus::Rejected, "SHOP-1");

    let first = review(&world, &execution, judgement()).await?;
    assert_eq!(first.reviewed, 2);
    let reviewed = reports(&world, &execution).await?;
    let late = of_cause(&seen, ReportStatus::Accepted, "SHOP-2");
    let refused = review(&world, &execution, late.clone()).await.unwrap_err();
    assert_eq!(reason(&refused), "stale_data_version");
    for part in ["is Rejected by", "ticket SHOP-1", "comment “real bug”"] {
        assert!(refused.message().contains(part), "{part} in {}", refused.message());
    }
    assert_eq!(reports(&world, &execution).await?, reviewed, "all or none");

    // One that was taken back is a change, too, for a reviewer who has seen it.
    let judged_cause = cause_of(&world, &execution).await?;
    let undo = UndoReviewRequest {
        project_id: None,
        execution_id: execution.id.clone(),
        id: first.review_id,
    };
    world.reports().undo_review(reviewer(&world).await.call(undo)).await?;
    let again = of_cause(&judged_cause, ReportStatus::Accepted, "SHOP-2");
    let refused = review(&world, &execution, again).await.unwrap_err();
    assert!(refused.message().contains("was taken back"), "{}", refused.message());
    review(&world, &execution, late).await?;
    Ok(())
}

#[tokio::test]
async fn results_that_arrive_do_not_change_the_version_of_a_cause_and_single_reviews_do()
-> Result<()> {
    let world = World::new().await?;
    world.include(&[("a", 1), ("b", 1)]).await?;
    let execution = world.start().await?;
    world.report(&execution.id, json!([failed("a", "lost")])).await?;
    let seen = cause_of(&world, &execution).await?;
    world.report(&execution.id, json!([failed("b", "lost")])).await?;
    let grown = cause_of(&world, &execution).await?;
    assert_eq!((seen.count, grown.count), (1, 2));
    assert_eq!(seen.data_version, grown.data_version);

    let entries = reports(&world, &execution).await?;
    review(&world, &execution, judged(&entries[1..], ReportStatus::Rejected, "SHOP-1")).await?;
    let late = of_cause(&seen, ReportStatus::Accepted, "SHOP-2");
    let refused = review(&world, &execution, late.clone()).await.unwrap_err();
    assert_eq!(reason(&refused), "stale_data_version");
    // A cause that was seen and is not selected does not matter.
    let one =
        ReviewInput { causes: Vec::new(), reports: vec![entries[0].id.clone()], ..late.clone() };
    review(&world, &execution, one).await?;
    review(&world, &execution, ReviewInput { seen_causes: Vec::new(), ..late }).await?;
    Ok(())
}

#[tokio::test]
async fn one_of_two_concurrent_reviews_of_a_cause_wins() -> Result<()> {
    let world = World::new().await?;
    for _ in 0..8 {
        let execution = failures(&world).await?;
        let seen = cause_of(&world, &execution).await?;
        let attempt = |status, ticket| review(&world, &execution, of_cause(&seen, status, ticket));
        let (one, other) = tokio::join!(
            attempt(ReportStatus::Rejected, "SHOP-1"),
            attempt(ReportStatus::Accepted, "SHOP-2")
        );
        assert_ne!(one.is_ok(), other.is_ok(), "{one:?} {other:?}");
    }
    Ok(())
}

#[tokio::test]
async fn one_of_two_concurrent_reviews_wins() -> Result<()> {
    let world = World::new().await?;
    for _ in 0..8 {
        let execution = failures(&world).await?;
        let entries = reports(&world, &execution).await?;
        let attempt = |status, ticket| {
            let input = ReviewInput { seen: seen(&entries), ..judged(&entries, status, ticket) };
            review(&world, &execution, input)
        };
        let (one, other) = tokio::join!(
            attempt(ReportStatus::Rejected, "SHOP-1"),
            attempt(ReportStatus::Accepted, "SHOP-2")
        );
        assert_ne!(one.is_ok(), other.is_ok(), "{one:?} {other:?}");
        let expected = if one.is_ok() {
            (ReportStatus::Rejected, "SHOP-1")
        } else {
            (ReportStatus::Accepted, "SHOP-2")
        };
        for entry in reports(&world, &execution).await? {
            assert_eq!((entry.status(), entry.ticket.as_str()), expected);
        }
    }
    Ok(())
}

#[tokio::test]
async fn absent_texts_of_a_review_are_kept_and_empty_ones_are_cleared() -> Result<()> {
    let world = World::new().await?;
    let execution = failures(&world).await?;
    let entries = reports(&world, &execution).await?;
    review(&world, &execution, judged(&entries, ReportStatus::Rejected, "SHOP-1")).await?;
    let absent =
        ReviewInput { comment: None, ticket: None, ..judged(&entries, ReportStatus::Accepted, "") };
    review(&world, &execution, absent.clone()).await?;
    let kept = reports(&world, &execution).await?.remove(0);
    assert_eq!((kept.ticket.as_str(), kept.comment()), ("SHOP-1", "real bug"));

    let empty = ReviewInput { comment: Some(String::new()), ticket: Some(String::new()), ..absent };
    review(&world, &execution, empty).await?;
    let cleared = reports(&world, &execution).await?.remove(0);
    assert_eq!((cleared.ticket.as_str(), cleared.comment), ("", None));
    Ok(())
}

#[tokio::test]
async fn seen_versions_have_a_valid_id_and_are_limited() -> Result<()> {
    let world = World::new().await?;
    let execution = failures(&world).await?;
    let entries = reports(&world, &execution).await?;
    let one = SeenTestReport { id: "b".to_owned(), data_version: "1".to_owned() };
    let many = vec![seen(&entries).remove(0); 10_001];
    let no_cause = SeenCause { fingerprint: "b".to_owned(), data_version: "1".to_owned() };
    let cause = SeenCause { fingerprint: entries[0].fingerprint.clone(), ..no_cause.clone() };
    for (seen, seen_causes) in
        [(vec![one], vec![]), (many, vec![]), (vec![], vec![no_cause]), (vec![], vec![cause; 1001])]
    {
        let accepted = judged(&entries, ReportStatus::Accepted, "");
        let input = ReviewInput { seen, seen_causes, ..accepted };
        let refused = review(&world, &execution, input).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{refused:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_review_waits_until_results_of_the_execution_are_stored() -> Result<()> {
    let world = World::new().await?;
    let execution = failures(&world).await?;
    let entries = reports(&world, &execution).await?;
    let mut results = begin(&world.db).await?;
    sqlx::query("select from execution for update").execute(&mut *results).await?;

    let mut reviewed =
        pin!(review(&world, &execution, judged(&entries, ReportStatus::Accepted, "")));
    let waits = "select count(*) from pg_stat_activity
         where datname = current_database() and wait_event_type = 'Lock'";
    let waiting = async {
        let mut tick = interval(Duration::from_millis(10));
        while world.count(waits).await? == 0 {
            tick.tick().await;
        }
        anyhow::Ok(())
    };
    tokio::select! {
        _ = &mut reviewed => bail!("the review did not wait for the results"),
        waiting = waiting => waiting?,
    }
    results.commit().await?;
    reviewed.await?;
    let accepted = i32::from(ReportStatus::Accepted);
    assert!(reports(&world, &execution).await?.iter().all(|report| report.status == accepted));
    Ok(())
}
