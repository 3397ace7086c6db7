//! Work with reports: reviews, archived executions, statistics and debug records.

use assay_testkit::{Answer, Api, eventually};
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    customer::Customer,
    junit::upload,
    world::{create_project, id},
};

const JUNIT: &str = r#"<testsuite name="shop">
    <testcase classname="Cart" name="adds up" time="0.5" timestamp="2026-11-20T12:00:00Z"/>
    <testcase classname="Cart" name="ships" time="1.5"><failure message="lost"/></testcase>
</testsuite>"#;

/// Creates a project with a set and an execution of two tests, the second of which failed.
async fn create_failed_execution(api: &Api) -> (String, String, Value) {
    let project = create_project(api).await;
    let set = json!({"Name": "Nightly", "Tags": "nightly"});
    let set = api.post(&format!("{project}/testsets"), set).await.created();
    let set = format!("{project}/testsets/{}", id(&set));
    let execution = upload(api, &set, JUNIT).await.created();
    (project, set, execution)
}

pub(crate) fn report_path(project: &str, report: &Value) -> String {
    let at = |field: &str| report[field].as_str().unwrap();
    let (case, plan) = (at("TestCaseId"), at("TestPlanId"));
    format!("{project}/testcases/{case}/testplans/{plan}/testreports/{}", id(report))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_report_is_investigated_and_accepted() {
    let api = &Customer::new().await.api;
    let (project, _, execution) = create_failed_execution(api).await;
    let report = &execution["TestReports"][1];
    let path = report_path(&project, report);

    let etag = api.get(&path).await.headers["etag"].clone();
    let investigated =
        json!({"Status": "Investigation", "Comment": "needs a look", "Result": "Passed"});
    let investigated = api.put(&path, investigated).await.ok();
    assert_eq!(investigated["Status"], "Investigation");
    assert_eq!(investigated["Comment"], "needs a look");
    assert_eq!(investigated["Result"], "Failed", "a review does not change the result");

    let outdated = api.request(Method::PUT, &path).header("If-Match", etag);
    let outdated = Answer::of(outdated.json(&json!({"Status": "Rejected"}))).await;
    outdated.is_problem(412, "stale_data_version");
    let mut whole = investigated.clone();
    whole["Status"] = json!("Accepted");
    let accepted = api.put(&path, whole).await.ok();
    assert_eq!(accepted["Status"], "Accepted");
    let stale = json!({"Status": "Rejected", "DataVersion": investigated["DataVersion"]});
    api.put(&path, stale).await.is_problem(409, "stale_data_version");
    for wrong in [json!({"Status": "Running"}), json!({"Status": "Great"}), json!({"Status": null})]
    {
        let problem = api.put(&path, wrong).await.is_problem(422, "invalid");
        assert_eq!(problem["errors"][0]["pointer"], "/Status");
    }
    assert_eq!(api.get(&path).await.ok(), accepted);

    let cases = format!("{project}/testcases?q=ships");
    eventually("the review in the test case", || async {
        (api.get(&cases).await.ok()[0]["LastReportStatus"] == "Accepted").then_some(())
    })
    .await;
    eventually("the review in the notifications", || async {
        let all = api.get("/api/notifications").await.ok();
        let mut all = all.as_array().unwrap().iter();
        let is_it =
            |record: &&Value| record["Action"] == "Reviewed" && record["State"] == "Accepted";
        all.find(is_it).map(drop)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn archived_executions_are_not_listed_but_count_in_statistics() {
    let api = &Customer::new().await.api;
    let (project, set, execution) = create_failed_execution(api).await;
    let path = format!("{project}/executions/{}", id(&execution));
    let ids = async |list: &str| -> Vec<String> {
        let list = api.get(list).await.ok();
        list.as_array().unwrap().iter().map(|record| id(record).to_owned()).collect()
    };
    let (active, archive) =
        (format!("{project}/executions"), format!("{project}/executions/archive"));
    assert!(ids(&archive).await.is_empty());

    assert_eq!(api.put(&path, json!({"Archived": true})).await.expect(204).body, b"");
    assert!(ids(&active).await.is_empty());
    assert_eq!(ids(&archive).await, [id(&execution)]);
    assert!(ids(&format!("{set}/executions")).await.is_empty());
    assert_eq!(ids(&format!("{set}/executions/history")).await, [id(&execution)]);
    let problem = api.put(&path, json!({"Archived": null})).await.is_problem(422, "invalid");
    assert_eq!(problem["errors"][0]["pointer"], "/Archived");

    let statistics = api.get(&format!("{set}/stats?tag=nightly&fromDate=2026-01-01")).await.ok();
    assert_eq!(statistics, json!([api.get(&path).await.ok()["Statistic"]]));
    assert_eq!(statistics[0]["TestCasesFailed"], 1);
    assert_eq!(api.get(&format!("{set}/stats?toDate=2026-01-01")).await.ok(), json!([]));
    for bad in ["fromDate=01.01.2026", "toDate=2026-02-30", "environmentId=0"] {
        let problem = api.get(&format!("{set}/stats?{bad}")).await.is_problem(422, "invalid");
        let name = bad.split('=').next().unwrap();
        assert_eq!(problem["errors"][0]["pointer"], format!("/{name}"));
    }

    api.put(&path, json!({"Archived": false})).await.expect(204);
    assert_eq!(ids(&active).await, [id(&execution)]);
    api.put(&format!("{active}/{}", id(&execution["TestReports"][0])), json!({"Archived": true}))
        .await
        .is_problem(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_debug_record_shows_deleted_test_cases_until_its_project_is_deleted() {
    let api = &Customer::new().await.api;
    let (project, _, execution) = create_failed_execution(api).await;
    let report = &execution["TestReports"][1];
    let path = format!("/api/projects/0/testcases/0/testplans/0/testreports/{}/debug", id(report));
    let fields = |object: &Value| -> Vec<String> {
        let mut names: Vec<String> = object.as_object().unwrap().keys().cloned().collect();
        names.sort();
        names
    };

    let record = api.get(&path).await.ok();

    let [record] = &record.as_array().unwrap()[..] else { panic!("{record}") };
    for (object, expected) in [
        (
            "Customer",
            &["Appliances", "Archived", "Deleted", "Id", "Name", "StorageAccount", "Subdomain"][..],
        ),
        ("Project", &["Archived", "Deleted", "Description", "Id", "Name"]),
        ("TestCase", &["Archived", "Deleted", "Description", "Id", "Identifier", "Name"]),
        (
            "TestPlan",
            &[
                "Archived",
                "Deleted",
                "Id",
                "Instances",
                "MinimumDurationInMin",
                "Revision",
                "Status",
                "TestType",
            ],
        ),
        (
            "TestReport",
            &[
                "Archived",
                "Comment",
                "Deleted",
                "ExecutionNumber",
                "FinishedAt",
                "Id",
                "InstanceCount",
                "IsFinished",
                "Result",
                "StartedAt",
                "Status",
            ],
        ),
    ] {
        assert_eq!(fields(&record[object]), expected, "{object}");
        assert_eq!(record[object]["Deleted"], false, "{object}");
    }
    assert_eq!(
        fields(&record["Results"][0]),
        ["DurationInSec", "FinishDateTime", "Id", "InstanceNr", "Result", "StartDateTime"]
    );
    assert_eq!(record["Results"].as_array().unwrap().len(), 1);
    assert_eq!(record["Schedules"], json!([]));
    assert_eq!(record["TestCase"]["Identifier"], "Cart.ships");
    assert_eq!(record["TestReport"]["IsFinished"], true);
    assert_eq!(record["Results"][0]["Result"], "Failed");

    api.get(&path.replace(id(report), id(&execution))).await.is_problem(404, "not_found");
    let case = report["TestCaseId"].as_str().unwrap();
    api.delete(&format!("{project}/testcases/{case}")).await.expect(204);
    let record = &api.get(&path).await.ok()[0];
    for (object, deleted) in [("Project", false), ("TestCase", true), ("TestPlan", true)] {
        assert_eq!(record[object]["Deleted"], deleted, "{object}");
    }
    assert_eq!(record["TestReport"]["Id"], report["Id"]);

    api.delete(&project).await.expect(204);
    eventually("the debug record to be deleted with its project", || async {
        (api.get(&path).await.status == 404).then_some(())
    })
    .await;
}

/// A sample of a format.
macro_rules! sample {
    ($path:literal) => {
        include_str!(concat!("../../../../services/kit/formats/tests/files/", $path))
    };
}

#[tokio::test(flavor = "multi_thread")]
async fn the_format_of_a_report_is_recognized_by_its_contents() {
    let api = &Customer::new().await.api;
    let project = create_project(api).await;
    let upload = async |media_type: &'static str, file: &'static str| {
        let name = format!("{media_type} {}", file.len());
        let set = api.post(&format!("{project}/testsets"), json!({"Name": name})).await.created();
        let path = format!("{project}/testsets/{}/results", id(&set));
        let request = api.request(Method::POST, &path).header("Content-Type", media_type);
        Answer::of(request.body(file)).await
    };
    for (media_type, file, cases, passed) in [
        ("application/json", sample!("ctrf/pytest.json"), 8, 3),
        ("application/json", sample!("playwright-json/results.json"), 7, 3),
        ("application/json", sample!("cucumber-json/cucumber.json"), 5, 2),
        ("application/x-ndjson", sample!("cucumber-messages/messages.ndjson"), 5, 2),
        ("application/x-ndjson", sample!("go-test/shop.json"), 9, 3),
        ("text/plain", sample!("tap/node.tap"), 5, 2),
        ("application/xml", sample!("robot/output.xml"), 4, 2),
        ("application/xml", sample!("nunit3/pytest-nunit.xml"), 8, 4),
        ("text/xml", sample!("trx/jest.trx"), 8, 3),
        // The media type does not matter.
        ("text/plain", sample!("xunit/version-2.xml"), 5, 2),
    ] {
        let execution = upload(media_type, file).await.created();
        let statistic = &execution["Statistic"];
        assert_eq!(statistic["TestCasesTotal"], cases, "{file:.80}");
        assert_eq!(statistic["TestCasesPassed"], passed, "{file:.80}");
    }
    for (media_type, file, status, code, part) in [
        ("text/plain", "hello", 422, "unknown_format", "send JUnit XML"),
        (
            "application/json",
            r#"{"reportFormat": "CTRF", "results": {"tests": [{]}}"#,
            400,
            "malformed",
            "CTRF JSON",
        ),
        (
            "application/json",
            r#"{"uuid": "1", "historyId": "2"}"#,
            422,
            "several_files",
            "Allure results",
        ),
    ] {
        let problem = upload(media_type, file).await.is_problem(status, code);
        assert!(problem.to_string().contains(part), "{problem}");
    }
    upload("image/png", "x").await.is_problem(415, "unsupported_media_type");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_execution_is_exported_as_junit_and_a_case_has_a_history() {
    let api = &Customer::new().await.api;
    let (project, set, execution) = create_failed_execution(api).await;

    let file = api.get(&format!("{project}/executions/{}/junit", id(&execution))).await;
    assert_eq!(file.expect(200).headers["content-type"], "application/xml");
    let file = String::from_utf8(file.body).unwrap();
    let again = upload(api, &set, file).await.created();

    for (before, after) in execution["TestReports"]
        .as_array()
        .unwrap()
        .iter()
        .zip(again["TestReports"].as_array().unwrap())
    {
        for same in ["TestCaseId", "Result", "Status", "TotalDurationInSec", "StartDateTime"] {
            assert_eq!(before[same], after[same], "{same}");
        }
    }
    let case = again["TestReports"][1]["TestCaseId"].as_str().unwrap();
    let history = api.get(&format!("{project}/testcases/{case}/history")).await.ok();
    let runs: Vec<_> = history.as_array().unwrap().iter().collect();
    assert_eq!(runs.iter().map(|run| &run["ExecutionNumber"]).collect::<Vec<_>>(), [2, 1]);
    assert_eq!((&runs[0]["Result"], &runs[0]["FlakinessScore"]), (&json!("Failed"), &json!(0.0)));
    let page = api.get(&format!("{project}/testcases/{case}/history?limit=1")).await;
    assert!(page.headers["link"].to_str().unwrap().contains("rel=\"next\""));
}
