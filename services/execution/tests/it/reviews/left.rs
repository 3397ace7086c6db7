//! Reviews of those test reports of a cause that nobody has judged.

use anyhow::Result;
use assay_proto::{
    ReportStatus,
    execution::{MuteInput, ReviewInput, TestReportEntry},
};
use serde_json::json;

use crate::{
    changes::{failed, reports, run},
    known_failures::{accepted, in_days, review},
    world::World,
};

#[tokio::test]
async fn a_review_of_what_is_left_of_a_cause_keeps_the_judgements_of_others() -> Result<()> {
    let world = World::new().await?;
    let results = ["a", "b", "c", "d", "e"].map(|name| failed(name, "lost"));
    let execution = run(&world, "main", json!(results)).await?;
    let entries = reports(&world, &execution).await?;
    let theirs = ReviewInput {
        reports: entries[..2].iter().map(|entry| entry.id.clone()).collect(),
        status: ReportStatus::Rejected.into(),
        ticket: Some("SHOP-7".to_owned()),
        ..ReviewInput::default()
    };
    review(&world, &execution, theirs).await?;

    let left = ReviewInput {
        causes: vec![entries[0].fingerprint.clone()],
        unreviewed: Some(true),
        known: Some(MuteInput { every_case: false, muted_until: Some(in_days(7)) }),
        ..accepted()
    };
    let reviewed = review(&world, &execution, left.clone()).await?;
    assert_eq!((reviewed.reviewed, reviewed.known_failures), (3, 3));
    let facts = |entry: &TestReportEntry| (entry.status(), entry.ticket.clone(), entry.is_muted);
    let judged: Vec<_> = reports(&world, &execution).await?.iter().map(facts).collect();
    let (theirs, own) = (
        (ReportStatus::Rejected, "SHOP-7".to_owned(), false),
        (ReportStatus::Accepted, "SHOP-1".to_owned(), true),
    );
    assert_eq!(judged, [theirs.clone(), theirs, own.clone(), own.clone(), own]);
    assert_eq!(review(&world, &execution, left.clone()).await?.reviewed, 0, "nothing is left");

    // A report that is selected by its id is reviewed in any case, and so are all by default.
    let named = ReviewInput { reports: vec![entries[0].id.clone()], ..left.clone() };
    assert_eq!(review(&world, &execution, named).await?.reviewed, 1);
    let all = ReviewInput { unreviewed: None, ..left };
    assert_eq!(review(&world, &execution, all).await?.reviewed, 5);
    Ok(())
}
