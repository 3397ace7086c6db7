//! Positions of test reports in lists, and reviews of what these lists show.

use anyhow::Result;
use assay_proto::{
    ResultChange,
    execution::{
        Execution, GetPositionRequest, ListFailuresRequest, ListTestReportsRequest, MuteInput,
        ReviewInput, TestReportEntry, TestReportPosition,
    },
};
use serde_json::json;
use tonic::{Code, Status};

use crate::{
    causes::failures,
    changes::{failed, list_reports, passed, reports, run, summary},
    known_failures::{accepted, in_days, review},
    world::World,
};

async fn position(
    world: &World,
    list: &ListTestReportsRequest,
    by_cause: bool,
    id: &str,
) -> Result<TestReportPosition, Status> {
    let request = GetPositionRequest { list: Some(list.clone()), id: id.to_owned(), by_cause };
    Ok(world.reports().get_position(world.user.call(request)).await?.into_inner())
}

fn list_of(execution: &Execution, change: ResultChange) -> ListTestReportsRequest {
    let execution_id = execution.id.clone();
    ListTestReportsRequest { execution_id, change: change.into(), ..Default::default() }
}

/// Walks a list from its first test report, and returns the names of all of them.
async fn walk(
    world: &World,
    list: &ListTestReportsRequest,
    by_cause: bool,
    entries: &[TestReportEntry],
) -> Result<String, Status> {
    let (mut names, mut id) = (String::new(), None);
    for entry in entries {
        let at = position(world, list, by_cause, &entry.id).await?;
        if at.number.is_some() && at.previous_id.is_none() {
            id = Some(entry.id.clone());
        }
    }
    while let Some(current) = id {
        let entry = entries.iter().find(|entry| entry.id == current).unwrap();
        names.push_str(&entry.test_case_identifier);
        let at = position(world, list, by_cause, &current).await?;
        assert_eq!(at.number, Some(i32::try_from(names.len()).unwrap()));
        id = at.next_id;
    }
    Ok(names)
}

#[tokio::test]
async fn a_walk_visits_every_report_of_a_list_in_its_order() -> Result<()> {
    let world = World::new().await?;
    run(&world, "main", json!([passed("a"), failed("g", "slow")])).await?;
    let results = json!([
        failed("a", "lost"),
        failed("b", "slow"),
        failed("c", "slow"),
        passed("d"),
        failed("e", "slow"),
        failed("f", "lost"),
        failed("g", "slow")
    ]);
    let execution = run(&world, "main", results).await?;
    let entries = reports(&world, &execution).await?;
    let new = list_of(&execution, ResultChange::New);
    let all = list_of(&execution, ResultChange::Unspecified);

    assert_eq!(walk(&world, &new, true, &entries).await?, "bceaf", "the most frequent cause first");
    assert_eq!(walk(&world, &new, false, &entries).await?, "abcef");
    assert_eq!(walk(&world, &all, false, &entries).await?, "abcdefg");
    let mut sought = new.clone();
    sought.page = Some(assay_proto::Page { q: Some("LOS".to_owned()), ..Default::default() });
    assert_eq!(walk(&world, &sought, true, &entries).await?, "af");

    // A review takes a report out of the list, whose neighbours stay.
    let unreviewed = ListTestReportsRequest { unreviewed: true, ..all };
    let ids = vec![entries[1].id.clone()];
    review(&world, &execution, ReviewInput { reports: ids, ..accepted() }).await?;
    let at = position(&world, &unreviewed, false, &entries[1].id).await?;
    assert_eq!((at.number, at.total), (None, 5));
    let neighbours = (at.previous_id, at.next_id);
    assert_eq!(neighbours, (Some(entries[0].id.clone()), Some(entries[2].id.clone())));
    let at = position(&world, &new, true, &entries[5].id).await?;
    assert_eq!((at.number, at.total, at.reviewed, at.next_id), (Some(5), 5, 1, None));

    let stranger = uuid::Uuid::now_v7().to_string();
    let unknown = position(&world, &new, true, &stranger).await.unwrap_err();
    assert_eq!(unknown.code(), Code::NotFound);
    Ok(())
}

#[tokio::test]
async fn causes_are_reviewed_as_the_list_shows_them() -> Result<()> {
    let world = World::new().await?;
    run(&world, "main", json!([passed("a"), failed("b", "lost")])).await?;
    let results = json!([
        failed("a", "lost"),
        failed("b", "lost"),
        failed("c", "lost"),
        failed("d", "slow"),
        failed("e", "late"),
    ]);
    let execution = run(&world, "main", results).await?;
    let entries = reports(&world, &execution).await?;
    let of_causes = |causes: &[&TestReportEntry]| ReviewInput {
        causes: causes.iter().map(|entry| entry.fingerprint.clone()).collect(),
        change: Some(ResultChange::New.into()),
        muted: Some(false),
        ..accepted()
    };

    // Two causes and a report; the one that failed before is not in the list of new failures.
    let known = Some(MuteInput { every_case: false, muted_until: Some(in_days(7)) });
    let input = ReviewInput { known, ..of_causes(&[&entries[0], &entries[3]]) };
    let input = ReviewInput { reports: vec![entries[4].id.clone()], ..input };
    let reviewed = review(&world, &execution, input).await?;
    assert_eq!((reviewed.reviewed, reviewed.known_failures), (4, 4));

    let changes = summary(&world, &execution).await?.changes.unwrap();
    let counted = (changes.new, changes.muted_new, changes.still, changes.muted_still);
    assert_eq!(counted, (4, 4, 1, 0), "b is still failing, and not muted");
    assert_eq!(changes.unreviewed, 1);
    let listed = async |muted, unreviewed| {
        let list = list_of(&execution, ResultChange::Unspecified);
        let list = ListTestReportsRequest { muted, unreviewed, ..list };
        Ok::<_, Status>(list_reports(&world, list).await?.len())
    };
    assert_eq!((listed(Some(true), false).await?, listed(Some(false), false).await?), (4, 1));
    assert_eq!(listed(None, true).await?, 1);
    let causes = ListFailuresRequest {
        execution_id: execution.id.clone(),
        muted: Some(false),
        ..Default::default()
    };
    let causes = failures(&world, causes).await?;
    assert_eq!(causes.iter().map(|cause| cause.count).collect::<Vec<_>>(), [1]);

    let again = review(&world, &execution, of_causes(&[&entries[0]])).await?;
    assert_eq!(again.reviewed, 0, "all of them are muted");
    Ok(())
}
