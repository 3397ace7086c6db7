//! The grid of a test set, and the comparison of two executions.

use anyhow::Result;
use assay_proto::{
    Batch, TestResult,
    execution::{GetGridRequest, Grid, ListDifferencesRequest},
};
use futures::TryStreamExt;
use serde_json::json;
use tonic::Status;

use crate::{
    changes::{failed, passed, run},
    world::{World, fields},
};

#[tokio::test]
async fn a_grid_has_the_results_of_the_latest_executions() -> Result<()> {
    let world = World::new().await?;
    let first = run(&world, "main", json!([passed("a"), failed("b", "lost")])).await?;
    run(&world, "other", json!([failed("a", "lost")])).await?;
    let last = run(&world, "main", json!([passed("b"), passed("c")])).await?;
    let grid = async |part: GetGridRequest| {
        let (project_id, test_set_id) = (world.project.clone(), world.set.clone());
        let request = GetGridRequest { project_id, test_set_id, ..part };
        Ok::<_, Status>(world.statistics().get_grid(world.user.call(request)).await?.into_inner())
    };
    let shown = |grid: &Grid| -> Vec<(String, String)> {
        let cases = grid.cases.iter();
        cases.map(|case| (case.test_case_identifier.clone(), case.outcomes.clone())).collect()
    };
    let pair = |case: &str, outcomes: &str| (case.to_owned(), outcomes.to_owned());

    let all = grid(GetGridRequest::default()).await?;
    assert_eq!(all.executions.len(), 3);
    assert_eq!(shown(&all), [pair("a", "PF-"), pair("b", "F-P"), pair("c", "--P")]);
    let branch = Some("main".to_owned());
    let main = grid(GetGridRequest { branch: branch.clone(), ..Default::default() }).await?;
    assert_eq!(shown(&main), [pair("a", "P-"), pair("b", "FP"), pair("c", "-P")]);
    assert_eq!(main.executions[1].id, last.id);
    let failing = grid(GetGridRequest { failing: true, ..Default::default() }).await?;
    assert_eq!(shown(&failing), [pair("a", "PF-"), pair("b", "F-P")]);

    // As a merge of launches marks it.
    world.change("update execution set is_merged = true where branch = 'other'").await?;
    let merged = grid(GetGridRequest::default()).await?;
    assert_eq!(shown(&merged), shown(&main), "its results are those of another execution");

    let part = GetGridRequest { branch, executions: Some(1), limit: Some(1), ..Default::default() };
    let page = grid(part.clone()).await?;
    assert_eq!(shown(&page), [pair("b", "P")]);
    let rest = grid(GetGridRequest { cursor: page.next_cursor, ..part.clone() }).await?;
    assert_eq!(shown(&rest), [pair("c", "P")]);
    assert_eq!(rest.next_cursor, None);
    let none = grid(GetGridRequest { executions: Some(0), ..part }).await.unwrap_err();
    assert_eq!(fields(&none), ["executions"]);

    let request = ListDifferencesRequest {
        execution_id: last.id.clone(),
        other_execution_id: Some(first.id.clone()),
        ..Default::default()
    };
    let differences = world.statistics().list_differences(world.user.call(request)).await?;
    let batches: Vec<_> = differences.into_inner().try_collect().await?;
    let differences: Vec<_> = batches.iter().flat_map(|batch| batch.parse().unwrap()).collect();
    let results: Vec<_> = differences
        .iter()
        .map(|one| (one.test_case_identifier.as_str(), one.result(), one.other_result()))
        .collect();
    assert_eq!(
        results,
        [
            ("a", TestResult::NotExecuted, TestResult::Passed),
            ("b", TestResult::Passed, TestResult::Failed),
            ("c", TestResult::Passed, TestResult::NotExecuted),
        ]
    );
    Ok(())
}

#[tokio::test]
async fn a_grid_begins_with_the_tests_that_fail_now_and_leads_to_their_failures() -> Result<()> {
    let world = World::new().await?;
    run(&world, "main", json!([failed("a", "no bank"), passed("b"), passed("c")])).await?;
    let last = json!([passed("a"), passed("b"), failed("c", "no printer")]);
    let last = run(&world, "main", last).await?;
    let grid = async |cursor: Option<String>| {
        let (project_id, test_set_id) = (world.project.clone(), world.set.clone());
        let part = GetGridRequest { limit: Some(1), cursor, ..Default::default() };
        let request = GetGridRequest { project_id, test_set_id, ..part };
        Ok::<_, Status>(world.statistics().get_grid(world.user.call(request)).await?.into_inner())
    };
    let (mut cases, mut cursor) = (Vec::new(), None);
    loop {
        let page = grid(cursor).await?;
        assert_eq!(page.executions[1].failures, 1);
        cases.extend(page.cases);
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    let shown: Vec<_> = cases.iter().map(|case| case.test_case_identifier.as_str()).collect();
    assert_eq!(shown, ["c", "a", "b"]);
    let [failure] = cases[0].failures.as_slice() else { panic!("{:?}", cases[0]) };
    assert_eq!((&failure.execution_id, failure.headline.as_str()), (&last.id, "no printer"));
    assert_eq!(cases[1].failures.len(), 1);
    assert_eq!(cases[2].failures.len(), 0);
    Ok(())
}
