//! Projects.

use assay_proto::catalog::*;
use serde_json::json;
use tonic::Response;

use crate::{
    user::{User, owned},
    world::{Answer, World, fault, invalid_fields, listed, page},
};

async fn create(user: &User, project: ProjectInput) -> Answer<Project> {
    let request = user.call(CreateProjectRequest { project: Some(project) });
    user.projects().create_project(request).await.map(Response::into_inner)
}

async fn get(user: &User, id: &str) -> Answer<Project> {
    let request = user.call(GetProjectRequest { id: id.to_owned() });
    user.projects().get_project(request).await.map(Response::into_inner)
}

async fn update(
    user: &User,
    project: &Project,
    changes: ProjectInput,
    fields: &[&str],
) -> Answer<Project> {
    let request = user.call(UpdateProjectRequest {
        id: project.id.clone(),
        data_version: Some(project.data_version.clone()),
        changes: Some(changes),
        fields: owned(fields),
    });
    user.projects().update_project(request).await.map(Response::into_inner)
}

#[tokio::test]
async fn creating_a_project_publishes_an_event() {
    let world = World::start().await;
    let user = world.user().await;
    let input = ProjectInput {
        name: "Shop".into(),
        description: "The web shop".into(),
        archived: true,
        report_template_id: Some("any text".into()),
        retention_in_days: None,
        default_branch: None,
        serves_metrics: false,
        ticket_url: String::new(),
    };
    let project = create(&user, input).await.unwrap();

    assert_eq!(project.customer_id, user.identity.customer.to_string());
    assert_eq!(project.report_template_id.as_deref(), Some("any text"));
    assert_eq!((project.overall_result, project.overall_status), (None, None));
    assert!(!project.archived, "a new project is active");
    assert_eq!(get(&user, &project.id).await.unwrap(), project);
    let data = json!({
        "Source": "Project", "SourceId": project.id, "Target": "Customer",
        "TargetId": project.customer_id, "Action": "Created", "ProjectId": project.id,
        "RecordVersion": "1", "Actor": user.identity.caller.actor(),
    });
    assert_eq!(world.events().await, [("project".to_owned(), "created".to_owned(), data)]);
}

#[tokio::test]
async fn an_update_keeps_absent_fields_and_clears_null_fields() {
    let world = World::start().await;
    let user = world.user().await;
    let input = ProjectInput {
        name: "Shop".into(),
        description: "The web shop".into(),
        report_template_id: Some("a".into()),
        ..ProjectInput::default()
    };
    let project = create(&user, input).await.unwrap();

    let changes = ProjectInput { name: "Store".into(), ..ProjectInput::default() };
    let renamed = update(&user, &project, changes.clone(), &["Name"]).await.unwrap();
    assert_eq!(renamed.name, "Store");
    assert_eq!(renamed.description, "The web shop");
    assert_eq!(renamed.report_template_id.as_deref(), Some("a"));
    assert_ne!(renamed.data_version, project.data_version);

    let cleared = update(&user, &renamed, changes, &["ReportTemplateId", "CustomerId"]).await;
    let cleared = cleared.unwrap();
    assert_eq!(cleared.report_template_id, None);
    assert_eq!(cleared.customer_id, project.customer_id);
    assert_eq!(get(&user, &project.id).await.unwrap(), cleared);
}

#[tokio::test]
async fn an_archived_project_is_listed_again_after_it_is_unarchived() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let ids = async || {
        let request = user.call(ListProjectsRequest { page: None, filter: 0 });
        let (projects, _) = listed(user.projects().list_projects(request).await).await.unwrap();
        projects.into_iter().map(|project| project.id).collect::<Vec<_>>()
    };
    let archive = |archived| ProjectInput { archived, ..ProjectInput::default() };

    let archived = update(&user, &project, archive(true), &["Archived"]).await.unwrap();
    assert!(archived.archived);
    assert_eq!(ids().await, Vec::<String>::new());
    assert_eq!(get(&user, &project.id).await.unwrap(), archived);
    update(&user, &archived, archive(false), &["Archived"]).await.unwrap();
    assert_eq!(ids().await, [project.id]);
    let events = world.events().await;
    let actions: Vec<&str> = events.iter().map(|(_, action, _)| action.as_str()).collect();
    assert_eq!(actions, ["created", "archived", "unarchived"]);
}

#[tokio::test]
async fn projects_are_listed_newest_first_in_pages() {
    let world = World::start().await;
    let user = world.user().await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.insert(0, user.project().await.id);
    }
    let (mut seen, mut cursor) = (Vec::new(), None);
    for expected in [2, 2, 1] {
        let request = user.call(ListProjectsRequest { page: Some(page(2, cursor)), filter: 0 });
        let (projects, next) = listed(user.projects().list_projects(request).await).await.unwrap();
        assert_eq!(projects.len(), expected);
        seen.extend(projects.into_iter().map(|project| project.id));
        cursor = next;
    }
    assert_eq!(cursor, None);
    assert_eq!(seen, ids);

    let request =
        user.call(ListProjectsRequest { page: Some(page(2, Some("nonsense".into()))), filter: 0 });
    assert_eq!(
        invalid_fields(listed(user.projects().list_projects(request).await).await),
        ["cursor"]
    );
}

#[tokio::test]
async fn all_invalid_fields_are_reported_together() {
    let world = World::start().await;
    let user = world.user().await;
    let wrong = ProjectInput {
        name: " ".into(),
        description: "a\0b".into(),
        report_template_id: Some("x".repeat(70_000)),
        retention_in_days: Some(0),
        ..ProjectInput::default()
    };
    let fields = ["Description", "Name", "ReportTemplateId", "RetentionInDays"];
    assert_eq!(invalid_fields(create(&user, wrong.clone()).await), fields);
    let project = user.project().await;
    assert_eq!(invalid_fields(update(&user, &project, wrong, &fields).await), fields);
    assert_eq!(get(&user, &project.id).await.unwrap(), project);
    let long = ProjectInput { name: "x".repeat(256), ..ProjectInput::default() };
    assert_eq!(invalid_fields(create(&user, long).await), ["Name"]);
}

#[tokio::test]
async fn each_change_of_a_project_with_a_retention_publishes_it() {
    let world = World::start().await;
    let user = world.user().await;
    let kept =
        |days| ProjectInput { name: "Shop".into(), retention_in_days: days, ..Default::default() };
    let project = create(&user, kept(Some(30))).await.unwrap();
    assert_eq!(project.retention_in_days, Some(30));
    let project = update(&user, &project, kept(None), &["Name"]).await.unwrap();
    assert_eq!(project.retention_in_days, Some(30));
    let project = update(&user, &project, kept(None), &["RetentionInDays"]).await.unwrap();
    assert_eq!(project.retention_in_days, None);

    let events = world.events().await.into_iter().filter(|(noun, ..)| noun == "retention");
    let events: Vec<_> = events.map(|(_, action, data)| (action, data)).collect();
    let event = |days: Option<i32>, revision: i64| {
        let data = json!({
            "ProjectId": project.id, "RetentionInDays": days, "Revision": revision,
        });
        ("set".to_owned(), data)
    };
    assert_eq!(events, [event(Some(30), 1), event(Some(30), 2), event(None, 3)]);
}

#[tokio::test]
async fn one_of_many_concurrent_updates_of_a_version_succeeds() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let mut attempts = tokio::task::JoinSet::new();
    for number in 0..50 {
        let (user, project) = (user.clone(), project.clone());
        attempts.spawn(async move {
            let name = format!("Shop {number}");
            let changes = ProjectInput { name: name.clone(), ..ProjectInput::default() };
            (name, update(&user, &project, changes, &["Name"]).await)
        });
    }
    let mut made = Vec::new();
    while let Some(attempt) = attempts.join_next().await {
        match attempt.unwrap() {
            (name, Ok(_)) => made.push(name),
            (_, failed) => assert_eq!(fault(failed), "stale_data_version"),
        }
    }
    assert_eq!(made.len(), 1);
    assert_eq!(get(&user, &project.id).await.unwrap().name, made[0]);
    assert_eq!(world.events().await.len(), 2);
}

#[tokio::test]
async fn without_a_version_the_last_writer_wins() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    for name in ["A", "B"] {
        let request = user.call(UpdateProjectRequest {
            id: project.id.clone(),
            data_version: None,
            changes: Some(ProjectInput { name: name.into(), ..ProjectInput::default() }),
            fields: owned(&["Name"]),
        });
        user.projects().update_project(request).await.unwrap();
    }
    assert_eq!(get(&user, &project.id).await.unwrap().name, "B");
}

#[tokio::test]
async fn a_malformed_project_id_is_not_found() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    for id in
        ["0", "", "nonsense", &project.id.to_uppercase(), "00000000-0000-0000-0000-000000000000"]
    {
        assert_eq!(fault(get(&user, id).await), "not_found", "{id}");
    }
}

#[tokio::test]
async fn the_default_branch_is_main_until_it_is_changed() {
    let world = World::start().await;
    let user = world.user().await;
    let branch = |name: &str| ProjectInput {
        name: "Shop".into(),
        default_branch: Some(name.to_owned()),
        ..ProjectInput::default()
    };
    assert_eq!(user.project().await.default_branch, "main");
    let project = create(&user, branch("trunk")).await.unwrap();
    assert_eq!(project.default_branch, "trunk");
    let changes = ProjectInput { name: "Store".into(), ..ProjectInput::default() };
    let renamed = update(&user, &project, changes, &["Name"]).await.unwrap();
    assert_eq!(renamed.default_branch, "trunk");
    let fields = ["DefaultBranch"];
    let longest = "\u{e9}".repeat(250);
    let latest = update(&user, &renamed, branch(&longest), &fields).await.unwrap();
    assert_eq!(latest.default_branch, longest);

    for wrong in ["", "two\nlines", "a\0b", &"x".repeat(251)] {
        assert_eq!(invalid_fields(create(&user, branch(wrong)).await)[0], fields[0], "{wrong:?}");
        let update = update(&user, &latest, branch(wrong), &fields).await;
        assert_eq!(invalid_fields(update)[0], fields[0], "{wrong:?}");
    }
    let cleared = update(&user, &latest, ProjectInput::default(), &fields).await;
    assert_eq!(invalid_fields(cleared), fields);
    assert_eq!(get(&user, &project.id).await.unwrap(), latest);
}
