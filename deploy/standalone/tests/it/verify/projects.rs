//! Projects, test cases and test sets that the catalog and the execution service have deleted or lack.

use assay_testkit::eventually;
use serde_json::json;

use super::{JUNIT, change, compared, differences, has_no_differences, has_rows, project_with_set};
use crate::{
    junit::upload,
    world::{World, create_project, id},
};

/// The id at the end of a path.
fn last(path: &str) -> &str {
    path.rsplit('/').next().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_that_a_restored_catalog_lacks_is_found() {
    let world = World::start().await;
    create_project(&world.api).await;
    let (project, set) = project_with_set(&world.api).await;
    upload(&world.api, &set, JUNIT).await.expect(201);
    has_no_differences(&world).await;

    // The backup of the catalog is older than the project.
    let [_, catalog, ..] = world.databases();
    for table in ["test_report", "test_set_case", "test_plan", "test_case", "test_set"] {
        change(catalog, &format!("delete from {table}")).await;
    }
    let project = last(&project);
    change(catalog, &format!("delete from project where id = '{project}'")).await;
    let lacking = format!(
        "project {project}: has executions or settings, but the catalog lacks it: restore a later \
         backup of the catalog"
    );
    let found = differences(&world).await;
    assert!(found.contains(&lacking), "{found:#?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_project_that_a_restored_catalog_has_again_is_found() {
    let world = World::start().await;
    let (_, set) = project_with_set(&world.api).await;
    upload(&world.api, &set, JUNIT).await.expect(201);
    let deleted = create_project(&world.api).await;
    world.api.put(&deleted, json!({"RetentionInDays": 30})).await.ok();
    world.api.delete(&deleted).await.expect(204);
    let [_, catalog, execution, _] = world.databases();
    eventually("the deletion", async || {
        let applied = format!("select from deletion where project_id = '{}'", last(&deleted));
        has_rows(execution, &applied).await.then_some(())
    })
    .await;
    has_no_differences(&world).await;

    let id = last(&deleted);
    let restore = format!("update project set deleted_at = null where id = '{id}'");
    change(catalog, &restore).await;
    let again = format!(
        "project {id}: the execution service has deleted it, but the catalog has it again: delete \
         it again"
    );
    assert_eq!(differences(&world).await, [&*again], "its retention is not compared");
    assay::rebuild(world.databases()).await.unwrap();
    assert_eq!(differences(&world).await, [&*again], "nothing but a user deletes a project");
    world.api.delete(&deleted).await.expect(204);
    has_no_differences(&world).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_deletion_of_a_project_is_found_and_applied_after_a_rebuild() {
    let world = World::start().await;
    let (project, set) = project_with_set(&world.api).await;
    upload(&world.api, &set, JUNIT).await.expect(201);
    create_project(&world.api).await;
    has_no_differences(&world).await;

    // The execution service asked for lost deletions shortly before, and the event has expired.
    let [_, catalog, ..] = world.databases();
    let id = last(&project);
    change(catalog, &format!("update project set deleted_at = now() where id = '{id}'")).await;
    let lost =
        format!("project {id}: the catalog has deleted it, but the execution service has not");
    let found = differences(&world).await;
    assert!(found.iter().any(|one| one.starts_with(&lost)), "{found:#?}");
    assay::rebuild(world.databases()).await.unwrap();
    let world = world.restart().await;
    eventually("the deletion", async || {
        let (_, found) = compared(&world).await;
        found.is_empty().then_some(())
    })
    .await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_test_cases_and_sets_are_compared_in_both_services() {
    let world = World::start().await;
    let api = &world.api;
    let (project, set) = project_with_set(api).await;
    upload(api, &set, JUNIT).await.expect(201);
    let cases = api.get(&format!("{project}/testcases")).await.ok();
    let case = id(&cases[0]).to_owned();
    let empty = api.post(&format!("{project}/testsets"), json!({"Name": "Old"})).await.created();
    let empty = id(&empty).to_owned();
    api.delete(&format!("{project}/testcases/{case}")).await.expect(204);
    api.delete(&format!("{project}/testsets/{empty}")).await.expect(204);
    has_no_differences(&world).await;

    // The execution service is restored from a backup that is older than the deletions.
    let [_, catalog, execution, _] = world.databases();
    change(execution, "delete from deleted_record").await;
    let shown = |noun: &str, id: &str| {
        format!("{noun} {id}: the catalog has deleted it, but insights, grids and metrics show it")
    };
    let mut found = differences(&world).await;
    found.sort();
    assert_eq!(found, [shown("test case", &case), shown("test set", &empty)]);
    assert_eq!(assay::rebuild(world.databases()).await.unwrap(), 2);
    assert_eq!(differences(&world).await, [""; 0]);

    // The catalog is.
    change(catalog, &format!("update test_case set deleted_at = null where id = '{case}'")).await;
    let again =
        format!("test case {case}: was deleted, but the catalog has it again: delete it again");
    assert_eq!(differences(&world).await, [again]);
    api.delete(&format!("{project}/testcases/{case}")).await.expect(204);
    has_no_differences(&world).await;
    world.stop().await;
}
