//! Fields of answers: each operation answers all fields of its schema and no others.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::records::{of, records};
use crate::{customer::Customer, world::id};

const PROJECT_ENTRY: &str = "Id Name Description";
const PROJECT: &str = "Id Name Description DataVersion ReportTemplateId OverallResult \
    OverallStatus Archived CustomerId RetentionInDays DefaultBranch ServesMetrics \
    TicketUrl";
const CASE_ENTRY: &str = "Id Identifier Name Description LastPlanStatus LastReportStatus \
    LastResult LastSwName LastSwIdentifier ExecutionStatistics Suites Labels Links";
const CASE: &str = "Id Identifier Name Description LastPlanStatus LastReportStatus LastResult \
    LastSwName LastSwIdentifier ExecutionStatistics DataVersion Archived TestPlanList ProjectId \
    Suites Labels Links";
const PLAN_SUMMARY: &str = "Id Description Revision TestType MinimumDurationInMin \
    MonitoringMessage Instances";
const PLAN: &str = "Id DataVersion Status Variables InputFileId SupportingFilesId \
    AutomationSupportingFilesId AutomatedTestContainerId TestReports ExecutionStatistics \
    TestCaseId Description Revision TestType MinimumDurationInMin MonitoringMessage Instances \
    MaximumDurationInMin";
const STEP: &str = "StepNr TestInput ExpectedResult Comment";
const SET_ENTRY: &str = "Id Name Description LastExecuted LastSubjectId LastSwIdentifier \
    LastSwName LastExecutionStatistic";
const SET: &str = "Id Name Description LastExecuted LastSubjectId LastSwIdentifier LastSwName \
    LastExecutionStatistic TestCases SelectedSubjectId SelectedEnvironmentId Priority \
    LastRunDuration Tags StopOnFailure TimeOut DataVersion Archived ProjectId Gate";
const SUBJECT_ENTRY: &str = "Id Identifier Name Uri SubjectType NeedsPublicIp SoftwareFileId \
    SoftwareFileName SoftwareFileSize InstallationFileId InstallationFileName InstructionFileId \
    InstructionFileName FrameworkFileId ModificationAllowed BaseSubjectId BaseSubjectIdentifier \
    PassRate";
const SUBJECT: &str = "Id Identifier Name Uri SubjectType NeedsPublicIp SoftwareFileId \
    SoftwareFileName SoftwareFileSize InstallationFileId InstallationFileName InstructionFileId \
    InstructionFileName FrameworkFileId ModificationAllowed BaseSubjectId BaseSubjectIdentifier \
    PassRate DataVersion Archived ProjectId Variables";
const VARIABLE: &str = "PoolName IsSecured ValidationRule ValidationErrorMsg Name DisplayName \
    Content";
const ENVIRONMENT_ENTRY: &str = "Id Name ImageFileId ContainedSubject ImageFileSize \
    ModificationAllowed TargetGroup FileProjectId Username Password Labels Exclusive";
const ENVIRONMENT: &str = "Id Name ImageFileId ContainedSubject ImageFileSize \
    ModificationAllowed TargetGroup FileProjectId Username Password DataVersion Archived ProjectId \
    Labels Exclusive";

/// Asserts that the record has exactly these fields.
#[track_caller]
fn has(record: &Value, fields: &str) {
    let found: BTreeSet<&str> =
        record.as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(found, fields.split_whitespace().collect(), "{record}");
}

/// Asserts that the first record of a list has exactly these fields.
#[track_caller]
fn lists(list: &Value, fields: &str) {
    has(list.as_array().expect("an array").first().expect("a record"), fields);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_answers_the_fields_of_its_schema() {
    let api = &Customer::new().await.api;
    let records = records(api).await;
    let [project, case, set, plan] =
        ["project", "test case", "test set", "test plan"].map(|noun| of(&records, noun));
    let (pid, cid, sid) = (project.id(), case.id(), set.id());
    let include = json!({"Id": cid});

    // Reads, lists and permanent URLs.
    for (noun, entry, details) in [
        ("project", PROJECT_ENTRY, PROJECT),
        ("test case", CASE_ENTRY, CASE),
        ("test set", SET_ENTRY, SET),
        ("subject", SUBJECT_ENTRY, SUBJECT),
        ("environment", ENVIRONMENT_ENTRY, ENVIRONMENT),
    ] {
        let record = of(&records, noun);
        let read = api.get(&record.path).await.ok();
        has(&read, details);
        lists(&api.get(&record.list).await.ok(), entry);
        has(&api.put(&record.path, json!({"Archived": true})).await.ok(), details);
        lists(&api.get(&format!("{}/archive", record.list)).await.ok(), entry);
        has(&api.put(&record.path, json!({"Archived": false})).await.ok(), details);
        let same = api.get(&record.path).await.ok();
        assert_ne!(same["DataVersion"], read["DataVersion"]);
        assert_eq!(api.get(&format!("{}?limit=1", record.list)).await.ok()[0]["Id"], read["Id"]);
    }
    has(&api.get(&plan.path).await.ok(), PLAN);
    has(&api.get(&format!("/api/projects/0/testcases/0/testplans/{}", plan.id())).await.ok(), PLAN);
    has(&api.get(&format!("/api/projects/0/testcases/{cid}")).await.ok(), CASE);
    has(&api.get(&format!("/api/projects/0/testsets/{sid}")).await.ok(), SET);
    for (path, form) in [("testsets", SET_ENTRY), ("testcases", CASE_ENTRY)] {
        let favorite = if path == "testsets" { ("testset", sid) } else { ("testcase", cid) };
        let body = json!({"ForeignId": favorite.1});
        api.post(&format!("/api/favorites/{}", favorite.0), body).await.expect(204);
        lists(&api.get(&format!("/api/projects/{pid}/{path}/favorites")).await.ok(), form);
    }

    // Members of a set.
    let members = format!("{}/testcases", set.path);
    for answer in [
        api.post(&members, include.clone()).await.ok(),
        api.put(&members, json!([include])).await.ok(),
    ] {
        has(&answer, SET);
        lists(&answer["TestCases"], CASE);
        assert_eq!(answer["LastRunDuration"], "00:00:00");
        assert_eq!(answer["TestCases"][0]["TestPlanList"], Value::Null);
    }
    lists(&api.get(&members).await.ok(), CASE);
    lists(&api.get(&format!("{}/testsets", case.path)).await.ok(), SET_ENTRY);
    let excluded = api.request(reqwest::Method::DELETE, &members).json(&json!([include]));
    assert_eq!(assay_testkit::Answer::of(excluded).await.expect(204).body, b"");

    // Plans and their steps.
    let details = api.get(&case.path).await.ok();
    lists(&details["TestPlanList"], PLAN_SUMMARY);
    has(&api.put(&plan.path, json!({"Status": "ReadyForExecution"})).await.ok(), PLAN);
    let copy = api.post(&format!("{}/transfer/Performance", plan.path), json!({})).await;
    has(&copy.created(), PLAN);
    assert_eq!(copy.headers["location"], format!("{}/{}", plan.list, id(&copy.json())));
    let steps = format!("{}/automationSteps", plan.path);
    let steps_input =
        json!([{"TestInput": "open", "ExpectedResult": "a page", "Comment": "first"}]);
    let written = api.put(&steps, steps_input).await.ok();
    lists(&written, STEP);
    assert_eq!(api.get(&format!("{steps}?comment=FIRST&count=1")).await.ok(), written);
    let in_body = api.request(reqwest::Method::GET, &steps).json(&json!({"comment": "second"}));
    assert_eq!(assay_testkit::Answer::of(in_body).await.ok(), json!([]));

    // Answers to creations.
    let variables = api.get(&of(&records, "subject").path).await.ok()["Variables"].clone();
    lists(&variables, VARIABLE);
    for (noun, form) in [
        ("project", PROJECT),
        ("test set", SET_ENTRY),
        ("subject", SUBJECT_ENTRY),
        ("environment", ENVIRONMENT_ENTRY),
        ("test plan", PLAN),
    ] {
        let record = of(&records, noun);
        let made = api.post(&record.list, record.body.clone()).await;
        has(&made.created(), form);
        let path = format!("{}/{}", record.list, id(&made.json()));
        assert_eq!(made.headers["location"], path);
        api.get(&path).await.ok();
        if noun != "test plan" {
            assert_eq!(api.delete(&path).await.expect(204).body, b"", "{noun}");
        }
    }
    let made = api.post(&case.list, json!({"Name": "Log out"})).await.created();
    has(&made, CASE);
    assert_eq!((&made["Identifier"], &made["TestPlanList"]), (&json!("TC-1"), &json!([])));
    assert_eq!(made["ExecutionStatistics"], json!([]));
}
