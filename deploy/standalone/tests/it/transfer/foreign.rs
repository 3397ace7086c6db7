//! Files of other tools.

use assay_testkit::eventually;
use serde_json::Value;

use super::Mover;
use crate::{customer::Customer, world::id};

const CASES: &str = "<suite><name>Master</name><sections><section><name>Checkout</name><cases>
    <case><id>C1</id><title>Pay</title><custom><steps_separated><step><index>1</index>
    <content>Pay</content><expected>Order</expected></step></steps_separated></custom></case>
    <case><id>C2</id><title>Ship</title></case></cases></section></sections></suite>";
const RUN: &str = "Case ID,Title,Status,Tested On,Elapsed,Comment,Defects,Run,Run ID
C1,Pay,Failed,2025-03-02 09:30:00,5s,no bank,SHOP-9,Nightly,R1
C2,Ship,Passed,2025-03-02 09:31:00,1m,,,Nightly,R1
C1,Pay,Passed,2025-03-03 09:30:00,5s,,,Nightly,R2
";

#[tokio::test(flavor = "multi_thread")]
async fn test_cases_and_runs_of_testrail_become_a_project_with_history() {
    let customer = Customer::new().await;
    let mover = Mover::new(&customer).await;
    mover.write("cases.xml", CASES);
    mover.write("run.csv", RUN);

    let output = mover.assay("import --from cases.xml run.csv --project shop --check").await;
    assert!(output.contains("2 executions, 2 testcases, 2 testsets"), "{output}");
    let projects = customer.api.get("/api/projects").await.ok();
    assert_eq!(projects, Value::Array(Vec::new()), "nothing is sent");
    mover.assay("import --from cases.xml run.csv --project shop").await;

    let api = &customer.api;
    let projects = api.get("/api/projects").await.ok();
    let at = format!("/api/projects/{}", id(&projects[0]));
    let cases = api.get(&format!("{at}/testcases")).await.ok();
    let pay = cases.as_array().unwrap().iter().find(|case| case["Identifier"] == "C1").unwrap();
    assert_eq!(pay["LastPlanStatus"], "ReadyForExecution");
    let history = api.get(&format!("{at}/testcases/{}/history", id(pay))).await.ok();
    let results: Vec<_> =
        history.as_array().unwrap().iter().map(|run| run["Result"].clone()).collect();
    assert_eq!(results, ["Passed", "Failed"], "newest first");
    let executions = api.get(&format!("{at}/executions")).await.ok();
    assert_eq!(executions[0]["RequestTime"], "2025-03-03T09:29:55.000000Z");
    let first = api.get(&format!("{at}/executions/{}", id(&executions[1]))).await.ok();
    let reports = first["TestReports"].as_array().unwrap();
    let pay = reports.iter().find(|report| report["TestCaseIdentifier"] == "C1").unwrap();
    assert_eq!((&pay["Result"], &pay["Ticket"]), (&"Failed".into(), &"SHOP-9".into()));
    assert_eq!(pay["TotalDurationInSec"], 5.0);
    let sets = api.get(&format!("{at}/testsets")).await.ok();
    let nightly = sets.as_array().unwrap().iter().find(|set| set["Name"] == "Nightly").unwrap();
    let nightly = format!("{at}/testsets/{}", id(nightly));
    eventually("the test cases with results in the test set of the runs", async || {
        let set = api.get(&nightly).await.ok();
        (set["TestCases"].as_array().map(Vec::len) == Some(2)).then_some(())
    })
    .await;
    let sets: Vec<_> = sets.as_array().unwrap().iter().map(|set| set["Name"].clone()).collect();
    assert_eq!(sets, ["Nightly", "Master"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_broken_file_is_imported() {
    let customer = Customer::new().await;
    let mover = Mover::new(&customer).await;
    mover.write("cases.xml", &CASES.replace("</section>", ""));
    mover.write("run.csv", RUN);

    let import = "import --from run.csv cases.xml --project shop";
    let (is_success, output) = mover.try_assay(import).await;

    assert!(!is_success && output.contains("cases.xml, line 4"), "{output}");
    let projects = customer.api.get("/api/projects").await.ok();
    assert_eq!(projects, Value::Array(Vec::new()));
    mover.write("cases.xml", CASES);
    mover.assay(import).await;
}
