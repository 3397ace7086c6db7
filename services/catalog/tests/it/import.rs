//! Imports of test cases.

use assay_proto::catalog::*;
use futures::{StreamExt, stream};
use serde_json::json;

use crate::{
    user::User,
    world::{Answer, World, fault, invalid_fields, listed},
};
use tokio::task::JoinSet;

impl User {
    async fn import(
        &self,
        project_id: &str,
        format: ImportFormat,
        body: &str,
    ) -> Answer<Vec<ImportedTestCase>> {
        let first = target(project_id, format);
        let chunks: Vec<_> = body
            .as_bytes()
            .chunks(1000)
            .map(|chunk| ImportTestCasesRequest {
                chunk: chunk.to_vec().into(),
                ..ImportTestCasesRequest::default()
            })
            .collect();
        let last = ImportTestCasesRequest { last: true, ..ImportTestCasesRequest::default() };
        let messages = [first].into_iter().chain(chunks).chain([last]);
        let request = self.call(stream::iter(messages.collect::<Vec<_>>()));
        Ok(listed(self.imports().import_test_cases(request).await).await?.0)
    }

    /// Identifier, name and description of the active test cases, oldest first.
    async fn all_cases(&self, project_id: &str) -> Vec<(String, String, String)> {
        let request = ListTestCasesRequest {
            project_id: project_id.to_owned(),
            ..ListTestCasesRequest::default()
        };
        let request = self.call(request);
        let (cases, _) = listed(self.cases().list_test_cases(request).await).await.unwrap();
        let cases = cases.into_iter().rev();
        cases.map(|case| (case.identifier, case.name, case.description)).collect()
    }
}

/// The first message of an import.
fn target(project_id: &str, format: ImportFormat) -> ImportTestCasesRequest {
    let project_id = project_id.to_owned();
    let target = ImportTestCasesTarget { project_id, format: format.into(), exact: false };
    ImportTestCasesRequest { target: Some(target), ..ImportTestCasesRequest::default() }
}

fn owned(cases: &[(&str, &str, &str)]) -> Vec<(String, String, String)> {
    let owned =
        |(a, b, c): &(&str, &str, &str)| ((*a).to_owned(), (*b).to_owned(), (*c).to_owned());
    cases.iter().map(owned).collect()
}

fn actions(rows: &[ImportedTestCase]) -> Vec<(i32, &str, ImportAction)> {
    rows.iter().map(|row| (row.row, row.identifier.as_str(), row.action())).collect()
}

#[tokio::test]
async fn rows_create_and_change_test_cases_by_their_identifiers() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let kept = user.case(&project, "kept").await;
    let changed = user.case(&project, "changed").await;
    let events = world.events().await.len();
    let rows = json!([
        {"Identifier": "new", "Name": "New", "Description": "d", "Archived": true, "Id": "x"},
        {"Identifier": "changed", "Description": "now with one"},
        {"Identifier": "kept", "Name": kept.name},
        {"Name": "Unnamed"},
    ]);
    let rows = user.import(&project.id, ImportFormat::Json, &rows.to_string()).await.unwrap();

    assert_eq!(
        actions(&rows),
        [
            (1, "new", ImportAction::Created),
            (2, "changed", ImportAction::Changed),
            (3, "kept", ImportAction::Unchanged),
            (4, "TC-1", ImportAction::Created),
        ]
    );
    assert_eq!(
        user.all_cases(&project.id).await,
        owned(&[
            ("kept", "Case kept", ""),
            ("changed", "Case changed", "now with one"),
            ("new", "New", "d"),
            ("TC-1", "Unnamed", ""),
        ])
    );
    assert_eq!(user.get_case(&changed.id).await.data_version.as_deref(), Some("2"));
    assert_eq!(user.get_case(&kept.id).await, kept);
    assert!(!user.get_case(&rows[0].id).await.archived);
    let events: Vec<_> = world.events().await.into_iter().skip(events).collect();
    let actor = events[0].2["Actor"].clone();
    assert_eq!(actor["Name"], "Ada Lovelace");
    let record = |row: usize| json!({"Id": rows[row].id, "TargetId": project.id});
    let event = |action: &str, title: &str, records: &[usize]| {
        let records: Vec<_> = records.iter().map(|row| record(*row)).collect();
        let data = json!({
            "Source": "TestCase", "Target": "Project", "Action": title, "Records": records,
            "ProjectId": project.id, "Actor": actor,
        });
        ("test_cases".to_owned(), action.to_owned(), data)
    };
    assert_eq!(events, [event("created", "Created", &[0, 3]), event("changed", "Changed", &[1])]);
}

#[tokio::test]
async fn generated_identifiers_skip_existing_and_imported_identifiers() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    user.case(&project, "TC-2").await;
    let csv = "Name,Identifier\nfirst,\nsecond,TC-3\nthird, \nfourth,\n";
    let rows = user.import(&project.id, ImportFormat::Csv, csv).await.unwrap();
    let identifiers: Vec<_> = rows.iter().map(|row| row.identifier.as_str()).collect();
    assert_eq!(identifiers, ["TC-1", "TC-3", "TC-4", "TC-5"]);
    let next = TestCaseInput { name: "next".into(), ..TestCaseInput::default() };
    assert_eq!(user.create_case(&project.id, next).await.unwrap().identifier, "TC-6");
}

#[tokio::test]
async fn an_invalid_row_rejects_the_whole_import() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    user.case(&project, "a").await;
    let before = (user.all_cases(&project.id).await, world.events().await);
    let rows = json!([
        {"Identifier": "a", "Name": "fits"},
        {"Identifier": "b"},
        {"Identifier": "a", "Name": "twice"},
        {"Name": "x".repeat(256)},
        {"Identifier": "c", "Name": "c", "Description": "\0"},
    ]);
    let wrong = user.import(&project.id, ImportFormat::Json, &rows.to_string()).await;
    assert_eq!(invalid_fields(wrong), ["1/Name", "2/Identifier", "3/Name", "4/Description"]);
    let broken = user.import(&project.id, ImportFormat::Json, "[{\"Name\": \"a\"}").await;
    assert_eq!(fault(broken), "malformed");
    assert_eq!((user.all_cases(&project.id).await, world.events().await), before);
}

#[tokio::test]
async fn an_import_does_not_change_archived_cases() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let archived = user.archive_case(&user.case(&project, "a").await).await;
    let csv = "Identifier,Name\na,another\n";
    let rows = user.import(&project.id, ImportFormat::Csv, csv).await.unwrap();
    assert_eq!(actions(&rows), [(1, "a", ImportAction::Created)]);
    assert_eq!(user.get_case(&archived.id).await, archived);
}

#[tokio::test]
async fn concurrent_imports_create_each_case_once() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let csv: String = (0..200).fold("Identifier,Name\n".to_owned(), |csv, number| {
        csv + &format!("case-{number},{number}\n,unnamed\n")
    });
    let imports = (0..6).map(|_| user.import(&project.id, ImportFormat::Csv, &csv));
    let singles = (0..20).map(|number| {
        let case = TestCaseInput {
            name: "single".into(),
            identifier: Some(format!("case-{number}")),
            ..TestCaseInput::default()
        };
        user.create_case(&project.id, case)
    });
    let (imports, singles) =
        futures::join!(futures::future::join_all(imports), futures::future::join_all(singles),);
    for import in imports {
        assert_eq!(import.unwrap().len(), 400);
    }
    for single in singles {
        assert!(single.is_ok() || fault(single) == "already_exists");
    }
    // Each of 6 imports creates 200 cases without an identifier; the 200 others are shared.
    assert_eq!(user.all_cases(&project.id).await.len(), 1400);
}

#[tokio::test]
async fn an_import_has_at_most_10_000_cases() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let mut lines: String = (0..10_000).fold(String::new(), |lines, number| {
        lines + &format!("{{\"Identifier\": \"case-{number}\", \"Name\": \"Case {number}\"}}\n")
    });
    let rows = user.import(&project.id, ImportFormat::Ndjson, &lines).await.unwrap();
    assert!(rows.iter().all(|row| row.action() == ImportAction::Created));
    let rows = user.import(&project.id, ImportFormat::Ndjson, &lines).await.unwrap();
    assert!(rows.iter().all(|row| row.action() == ImportAction::Unchanged));
    assert_eq!(rows.len(), 10_000);
    lines.push_str("{\"Name\": \"one more\"}\n");
    let refused = user.import(&project.id, ImportFormat::Ndjson, &lines).await;
    assert!(refused.unwrap_err().message().contains("10000"));
}

#[tokio::test]
async fn an_import_needs_a_project_and_the_write_permission() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let csv = "Name\nA\n";
    let stranger = world.user().await;
    assert_eq!(fault(stranger.import(&project.id, ImportFormat::Csv, csv).await), "not_found");
    assert_eq!(fault(user.import("0", ImportFormat::Csv, csv).await), "not_found");
    let reader = world.colleague(&user, "Read").await;
    assert_eq!(fault(reader.import(&project.id, ImportFormat::Csv, csv).await), "forbidden");
    assert!(user.all_cases(&project.id).await.is_empty());
}

#[tokio::test]
async fn generated_identifiers_fill_gaps_among_thousands_of_existing_ones() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    sqlx::query(
        "insert into test_case (customer_id, project_id, id, identifier, name, description)
         select $1, $2, gen_random_uuid(), 'TC-' || n, 'x', '' from generate_series(1, 5000) n
         where n not in (17, 4000)",
    )
    .bind(user.identity.customer)
    .bind(project.id.parse::<uuid::Uuid>().unwrap())
    .execute(&world.db)
    .await
    .unwrap();
    let rows = user.import(&project.id, ImportFormat::Csv, "Name\na\nb\nc\nd\n").await.unwrap();
    let identifiers: Vec<_> = rows.iter().map(|row| row.identifier.as_str()).collect();
    assert_eq!(identifiers, ["TC-17", "TC-4000", "TC-5001", "TC-5002"]);
    let rows = user.import(&project.id, ImportFormat::Csv, "Name\ne\n").await.unwrap();
    assert_eq!(rows[0].identifier, "TC-5003");
}

#[tokio::test]
async fn slow_uploads_do_not_block_other_imports() {
    let world = World::start().await;
    let slow = world.user().await;
    let project = slow.project().await;
    let mut bodies = JoinSet::new();
    for _ in 0..20 {
        let first = stream::iter([target(&project.id, ImportFormat::Csv)]);
        let request = slow.call(first.chain(stream::pending()));
        let mut imports = slow.imports();
        bodies.spawn(async move { imports.import_test_cases(request).await });
    }
    slow.import(&project.id, ImportFormat::Csv, "Name\na\n").await.unwrap();

    let other = world.user().await;
    let project = other.project().await;
    let started = std::time::Instant::now();
    other.import(&project.id, ImportFormat::Csv, "Name\na\n").await.unwrap();
    assert!(started.elapsed().as_secs() < 5);
}

#[tokio::test]
async fn identifiers_with_nul_characters_are_rejected() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let rows = json!([{"Identifier": "a\u{0}", "Name": "A"}, {"Identifier": "b", "Name": "B"}]);
    let answer = user.import(&project.id, ImportFormat::Json, &rows.to_string()).await;
    assert_eq!(invalid_fields(answer), ["0/Identifier"]);
}

#[tokio::test]
async fn plans_are_imported_with_test_cases_that_have_none() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let rows = json!([{"Identifier": "new", "Name": "New", "TestPlans": [
        {"TestPlan": {"Instances": 3, "Description": "old", "Status": "New"}},
        {"TestPlan": {
            "Status": "ReadyForExecution",
            "Variables": [{"Name": "CARD", "Content": "4242", "IsSecured": true}],
        }, "AutomationSteps": [{"TestInput": "pay", "ExpectedResult": "order"}]},
    ]}]);
    let imported = user.import(&project.id, ImportFormat::Json, &rows.to_string()).await.unwrap();
    user.import(&project.id, ImportFormat::Json, &rows.to_string()).await.unwrap();

    let case = user.get_case(&imported[0].id).await;
    assert_eq!(case.last_plan_status(), assay_proto::PlanStatus::ReadyForExecution);
    let plans = case.test_plan_list.unwrap().items;
    let instances: Vec<_> = plans.iter().map(|plan| (plan.revision, plan.instances)).collect();
    assert_eq!(instances, [(2, 1), (1, 3)]);
    let request = GetTestPlanRequest { id: plans[0].id.clone(), ..GetTestPlanRequest::default() };
    let plan = user.plans().get_test_plan(user.call(request)).await.unwrap().into_inner();
    assert_eq!((plan.variables[0].name.as_str(), plan.variables[0].is_secured), ("CARD", true));
    let request = GetAutomationStepsRequest {
        project_id: project.id.clone(),
        test_case_id: imported[0].id.clone(),
        test_plan_id: plans[0].id.clone(),
        ..GetAutomationStepsRequest::default()
    };
    let steps = user.plans().get_automation_steps(user.call(request)).await.unwrap().into_inner();
    assert_eq!((steps.items[0].step_nr, steps.items[0].test_input.as_str()), (1, "pay"));

    let wrong = json!([{"Name": "Wrong", "TestPlans": [
        {"TestPlan": {"Instances": 0}, "AutomationSteps": [{"StepNr": 0}]},
    ]}]);
    let refused = user.import(&project.id, ImportFormat::Json, &wrong.to_string()).await;
    assert_eq!(
        invalid_fields(refused),
        ["0/TestPlans/0/AutomationSteps/0/StepNr", "0/TestPlans/0/TestPlan/Instances"]
    );
}
