//! Exports and imports that are killed and repeated.

use std::fmt::Write;

use assay_testkit::eventually;

use super::Mover;
use crate::{customer::Customer, world::id};

const RUNS: usize = 30;

/// Returns a CSV export of TestRail with runs of three test cases.
fn runs() -> String {
    let mut text = "Case ID,Title,Status,Tested On,Run,Run ID\n".to_owned();
    for run in 1..=RUNS {
        for case in 1..=3 {
            let status = if (run + case) % 7 == 0 { "Failed" } else { "Passed" };
            let _ = writeln!(
                text,
                "C{case},Case {case},{status},2025-01-{run:02} 0{case}:00:00,Nightly,R{run}"
            );
        }
    }
    text
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_that_was_killed_is_continued_without_duplicates() {
    let customer = Customer::new().await;
    let mover = Mover::new(&customer).await;
    mover.write("runs.csv", &runs());
    let api = &customer.api;
    let executions = async || {
        let projects = api.get("/api/projects").await.ok();
        let Some(project) = projects.as_array().unwrap().first().cloned() else {
            return Vec::new();
        };
        let list = api.get(&format!("/api/projects/{}/executions", id(&project))).await.ok();
        list.as_array().unwrap().clone()
    };
    let import = "import --from runs.csv --project shop";

    for at_least in [3, 12] {
        let mut killed = mover.start(import);
        eventually("some executions", async || {
            (executions().await.len() >= at_least).then_some(())
        })
        .await;
        killed.kill().await.unwrap();
    }
    let output = mover.assay(import).await;
    assert!(output.contains(&format!("executions: {RUNS}")), "{output}");
    mover.assay(import).await;

    let executions = executions().await;
    assert_eq!(executions.len(), RUNS);
    for (number, execution) in (1..=RUNS).rev().zip(&executions) {
        assert_eq!(execution["Status"], "Completed");
        assert_eq!(execution["RequestTime"], format!("2025-01-{number:02}T01:00:00.000000Z"));
        assert_eq!(execution["Statistic"]["TestCasesTotal"], 3);
        assert_eq!(execution["Statistic"]["TestCasesPending"], 0);
    }
    let projects = api.get("/api/projects").await.ok();
    let cases = api.get(&format!("/api/projects/{}/testcases", id(&projects[0]))).await.ok();
    assert_eq!(cases.as_array().unwrap().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_that_was_killed_is_continued() {
    let customer = Customer::new().await;
    let mover = Mover::new(&customer).await;
    mover.write("runs.csv", &runs());
    mover.assay("import --from runs.csv --project shop").await;
    mover.assay("export --project shop --to whole").await;

    for files in [4, 30] {
        let mut killed = mover.start("export --project shop --to parts");
        let list = mover.folder.join("parts/files.ndjson.part");
        eventually("some files", async || {
            let text = std::fs::read_to_string(&list).unwrap_or_default();
            let is_over = mover.folder.join("parts/manifest.json").exists();
            (is_over || text.lines().count() >= files).then_some(())
        })
        .await;
        killed.kill().await.unwrap();
    }
    mover.try_assay("export --project shop --to parts").await;

    assert_eq!(
        super::records(&mover.folder.join("whole")),
        super::records(&mover.folder.join("parts"))
    );
}
