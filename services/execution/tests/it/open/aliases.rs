//! Results of test cases under several identifiers.

use anyhow::Result;

use super::by_name;
use crate::world::World;

/// Returns a report of passed tests with these names.
fn report(names: &[&str]) -> String {
    let tests: Vec<_> = names.iter().map(|name| format!("<testcase name='{name}'/>")).collect();
    format!("<testsuite>{}</testsuite>", tests.concat())
}

#[tokio::test]
async fn results_under_an_alias_belong_to_the_report_of_their_test_case() -> Result<()> {
    let world = World::new().await?;
    let execution = world.open(by_name("run-7")).await?;
    world.add_report(&execution.id, Some("old"), report(&["pays", "ships"]).as_bytes()).await?;
    let case = world.execution(&execution.id).await?.test_reports[0].test_case_id.clone();
    world.alias(&case, "pays by card").await?;

    for (reporter, names) in [
        ("new", &["pays by card"][..]),
        ("new", &["pays by card", "returns"]),
        ("both", &["pays by card", "pays"]),
    ] {
        let report = report(names);
        let added = world.add_report(&execution.id, Some(reporter), report.as_bytes()).await?;
        assert_eq!(usize::try_from(added.accepted)?, names.len(), "{names:?}");
    }

    let reports = world.complete(&execution.id).await?.test_reports;
    let identifiers: Vec<_> =
        reports.iter().map(|report| report.test_case_identifier.as_str()).collect();
    assert_eq!(identifiers, ["pays", "ships", "returns"]);
    assert_eq!(reports[0].test_case_id, case);
    let mut instances = Vec::new();
    for entry in world.instances(&reports[0]).await? {
        let path = world.instance_path(&reports[0], &entry.id);
        let instance = world.reports().get_instance(world.user.call(path)).await?.into_inner();
        instances.push((instance.reporter, instance.variant, instance.attempt));
    }
    instances.sort();
    let expected = [("both", "", 1), ("both", "pays by card", 1), ("new", "", 2), ("old", "", 1)];
    let expected = expected
        .map(|(reporter, variant, attempt)| (reporter.to_owned(), variant.to_owned(), attempt));
    assert_eq!(instances, expected);
    assert_eq!(world.differences().await?, 0);
    Ok(())
}
