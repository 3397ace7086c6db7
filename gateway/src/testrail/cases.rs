//! Projects, and their suites, sections and test cases.

use assay_proto::{
    catalog::{ListProjectsRequest, ListTestCasesRequest, TestCaseInput},
    execution::{NumberedKind, NumberedRecord},
};
use axum::extract::Request;
use serde_json::{Map, Value, json};
use tonic::Code;

use super::{
    Session,
    call::Call,
    number::{details, record},
    page::{self, Next, Paging},
};
use crate::{
    body::{self, Bounds, FieldFilter, JsonBody},
    gathered::CaseCalls,
    problem::Problem,
    services::{Projects, TestCases},
};

/// The field that has the identifier of a test case.
const IDENTIFIER: &str = "custom_automation_id";

/// Other names of the field.
const ALIASES: [&str; 2] = ["custom_case_automation_id", "custom_automation_identifier"];

/// The section of test cases that no client has put into one.
const SECTION: &str = "Test cases";

/// Returns the fields of test cases. Without that of identifiers, trcli stops.
pub(super) fn fields() -> Value {
    let options = json!({ "is_required": false });
    let context = json!({ "is_global": true, "project_ids": null });
    json!([{
        "id": 1, "system_name": IDENTIFIER, "name": "automation_id", "label": "Automation ID",
        "description": null, "type_id": 1, "display_order": 1, "is_active": true,
        "include_all": true, "template_ids": [],
        "configs": [{ "context": context, "options": options }],
    }])
}

/// Reads a JSON object.
pub(super) async fn object(request: Request) -> Result<Map<String, Value>, Problem> {
    let body = body::read_filtered(FieldFilter::default(), Bounds::RECORDS, request).await?;
    let malformed = |error| Problem::malformed(format!("the body is not a JSON object: {error}"));
    let body = body.map_or_else(|| b"{}".to_vec(), JsonBody::into_bytes);
    serde_json::from_slice(&body).map_err(malformed)
}

/// Returns a text of a body.
pub(super) fn text<'b>(body: &'b Map<String, Value>, field: &str) -> Option<&'b str> {
    body.get(field)?.as_str().map(str::trim).filter(|text| !text.is_empty())
}

fn required(body: &Map<String, Value>, field: &str) -> Result<String, Problem> {
    text(body, field).map(str::to_owned).ok_or_else(|| Problem::invalid(field, "is required"))
}

impl Session {
    pub(super) async fn projects(&self, call: &Call) -> Result<Value, Problem> {
        let paging = Paging::of(call)?;
        let mut projects: Projects = self.client();
        let request = ListProjectsRequest { page: Some(paging.rest()), ..Default::default() };
        let list = projects.list_projects(self.caller.call(request)).await?;
        let (found, next) = paging.read(list).await?;
        let records = found.iter().map(|project| record(&project.id, "", &Value::Null));
        let numbered = self.assign(None, NumberedKind::Project, records.collect()).await?;
        let rendered = numbered.iter().zip(&found).map(|(numbered, project)| {
            of_project(numbered.number, &project.name, &project.description)
        });
        Ok(page::of(
            call,
            "projects",
            &rendered.collect::<Vec<_>>(),
            next.map(|cursor| Next(Some(cursor))),
        ))
    }

    pub(super) async fn project_of(&self, number: i64) -> Result<Value, Problem> {
        let id = self.project(number).await?;
        let request = assay_proto::catalog::GetProjectRequest { id };
        let mut projects: Projects = self.client();
        let project = projects.get_project(self.caller.call(request)).await?.into_inner();
        Ok(of_project(number, &project.name, &project.description))
    }

    /// Returns the id of the project with a number.
    pub(super) async fn project(&self, number: i64) -> Result<String, Problem> {
        Ok(self.find(NumberedKind::Project, number).await?.scope_id)
    }

    /// Returns the number of a project.
    pub(super) async fn project_number(&self, id: &str) -> Result<i64, Problem> {
        let record = record(id, "", &Value::Null);
        Ok(self.assign_one(Some(id), NumberedKind::Project, record).await?.number)
    }

    pub(super) async fn suites(&self, project: i64) -> Result<Value, Problem> {
        Ok(json!([self.suite(project).await?]))
    }

    /// Returns the only suite of a project, which has its number.
    pub(super) async fn suite(&self, project: i64) -> Result<Value, Problem> {
        self.project(project).await?;
        Ok(json!({
            "id": project, "name": "Master", "description": null, "project_id": project,
            "is_master": true, "is_baseline": false, "is_completed": false, "completed_on": null,
        }))
    }

    pub(super) async fn sections(&self, call: &Call, project: i64) -> Result<Value, Problem> {
        let (id, paging) = (self.project(project).await?, Paging::of(call)?);
        let range = (paging.offset, paging.limit + 1);
        let mut found = self.list(id, NumberedKind::Section, range).await?;
        let limit = usize::try_from(paging.limit).unwrap_or(usize::MAX);
        let next = (found.len() > limit).then_some(Next(None));
        found.truncate(limit);
        let rendered = found.iter().map(|section| of_section(project, section));
        Ok(page::of(call, "sections", &rendered.collect::<Vec<_>>(), next))
    }

    pub(super) async fn add_section(
        &self,
        project: i64,
        request: Request,
    ) -> Result<Value, Problem> {
        let (id, body) = (self.project(project).await?, object(request).await?);
        let (name, parent) = (required(&body, "name")?, body.get("parent_id"));
        let parent = parent.and_then(Value::as_i64).filter(|parent| *parent > 0);
        let mut depth = 0;
        if let Some(parent) = parent {
            let parent = self.find(NumberedKind::Section, parent).await?;
            if parent.scope_id != id {
                return Err(Problem::invalid("parent_id", "must be a section of the project"));
            }
            depth = details(&parent).get("depth").and_then(Value::as_i64).unwrap_or_default() + 1;
        }
        let description = body.get("description").filter(|text| text.is_string());
        let section = self.section(&id, parent, &name, depth, description).await?;
        Ok(of_section(project, &section))
    }

    /// Returns a section, which is known by its name.
    async fn section(
        &self,
        project_id: &str,
        parent: Option<i64>,
        name: &str,
        depth: i64,
        description: Option<&Value>,
    ) -> Result<NumberedRecord, Problem> {
        let key = format!("{}/{name}", parent.unwrap_or_default());
        let details = json!({
            "name": name, "parent_id": parent, "depth": depth, "description": description,
        });
        let record = record(project_id, &key, &details);
        self.assign_one(Some(project_id), NumberedKind::Section, record).await
    }

    pub(super) async fn cases(&self, call: &Call, project: i64) -> Result<Value, Problem> {
        let (id, paging) = (self.project(project).await?, Paging::of(call)?);
        let request = ListTestCasesRequest {
            project_id: id.clone(),
            page: Some(paging.rest()),
            ..Default::default()
        };
        let mut cases: TestCases = self.client();
        let list = cases.list_test_cases(self.caller.call(request)).await?;
        let (found, next) = paging.read(list).await?;
        let records = found.iter().map(|case| record(&id, &case.identifier, &Value::Null));
        let numbered = self.assign(Some(&id), NumberedKind::TestCase, records.collect()).await?;
        let section = self.section(&id, None, SECTION, 0, None).await?.number;
        let rendered = numbered
            .iter()
            .zip(&found)
            .map(|(record, case)| of_case(project, record, &case.name, section));
        let next = next.map(|cursor| Next(Some(cursor)));
        Ok(page::of(call, "cases", &rendered.collect::<Vec<_>>(), next))
    }

    /// Adds a test case, unless the project has one with the identifier.
    pub(super) async fn add_case(&self, section: i64, request: Request) -> Result<Value, Problem> {
        let section = self.find(NumberedKind::Section, section).await?;
        let (id, body) = (section.scope_id, object(request).await?);
        let title = required(&body, "title")?;
        let mut fields = [IDENTIFIER].into_iter().chain(ALIASES);
        let given = fields.find_map(|field| text(&body, field)).map(str::to_owned);
        let input = TestCaseInput {
            name: title.clone(),
            identifier: given.clone(),
            ..TestCaseInput::default()
        };
        let cases: CaseCalls = self.client();
        let created = cases.create(self.caller.clone(), id.clone(), input).await;
        let identifier = match (created, given) {
            (Ok(created), _) => created.identifier,
            (Err(status), Some(given)) if status.code() == Code::AlreadyExists => given,
            (Err(status), _) => return Err(status.into()),
        };
        let details = json!({
            "title": title, "section_id": section.number, "refs": body.get("refs"),
        });
        let record = record(&id, &identifier, &details);
        let numbered = self.assign_one(Some(&id), NumberedKind::TestCase, record).await?;
        let project = self.project_number(&id).await?;
        Ok(of_case(project, &numbered, &title, section.number))
    }

    pub(super) async fn case(&self, number: i64) -> Result<Value, Problem> {
        let case = self.find(NumberedKind::TestCase, number).await?;
        self.found(&case).await
    }

    /// Changes the references of a test case, which only clients of TestRail see.
    pub(super) async fn update_case(
        &self,
        number: i64,
        request: Request,
    ) -> Result<Value, Problem> {
        let case = self.find(NumberedKind::TestCase, number).await?;
        let mut body = object(request).await?;
        let changes = body.remove("refs").map(|refs| ("refs".to_owned(), refs)).into_iter();
        let case = self.change(NumberedKind::TestCase, &case, changes.collect()).await?;
        self.found(&case).await
    }

    async fn found(&self, case: &NumberedRecord) -> Result<Value, Problem> {
        let id = &case.scope_id;
        let section = self.section(id, None, SECTION, 0, None).await?.number;
        let details = details(case);
        let title = details.get("title").and_then(Value::as_str).unwrap_or(&case.key);
        Ok(of_case(self.project_number(id).await?, case, title, section))
    }
}

fn of_project(number: i64, name: &str, description: &str) -> Value {
    json!({
        "id": number, "name": name, "announcement": description, "show_announcement": false,
        "is_completed": false, "completed_on": null, "suite_mode": 1,
    })
}

fn of_section(suite: i64, section: &NumberedRecord) -> Value {
    let mut details = details(section);
    details.insert("id".to_owned(), section.number.into());
    details.insert("suite_id".to_owned(), suite.into());
    Value::Object(details)
}

fn of_case(suite: i64, case: &NumberedRecord, title: &str, section: i64) -> Value {
    let details = details(case);
    let section = details.get("section_id").and_then(Value::as_i64).unwrap_or(section);
    json!({
        "id": case.number, "title": title, "section_id": section, "suite_id": suite,
        "template_id": 1, "type_id": 1, "priority_id": 2, "milestone_id": null,
        "refs": details.get("refs"), IDENTIFIER: case.key,
    })
}
