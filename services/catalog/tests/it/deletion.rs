//! Deletions and their effect on other records.

use assay_proto::{Reference, catalog::*};
use tonic::Response;

use crate::{
    user::{User, web_page},
    world::{Answer, World, fault, listed},
};

async fn delete_project(user: &User, project: &Project) -> Answer<()> {
    let request = user.call(DeleteProjectRequest { id: project.id.clone() });
    user.projects().delete_project(request).await.map(Response::into_inner)
}

async fn delete_case(user: &User, project: &Project, id: &str) -> Answer<()> {
    let (project_id, id) = (project.id.clone(), id.to_owned());
    let request = user.call(DeleteTestCaseRequest { project_id, id });
    user.cases().delete_test_case(request).await.map(Response::into_inner)
}

async fn delete_set(user: &User, project: &Project, id: &str) -> Answer<()> {
    let (project_id, id) = (project.id.clone(), id.to_owned());
    let request = user.call(DeleteTestSetRequest { project_id, id });
    user.sets().delete_test_set(request).await.map(Response::into_inner)
}

async fn delete_subject(user: &User, project: &Project, id: &str) -> Answer<()> {
    let (project_id, id) = (project.id.clone(), id.to_owned());
    let request = user.call(DeleteSubjectRequest { project_id, id });
    user.subjects().delete_subject(request).await.map(Response::into_inner)
}

async fn delete_environment(user: &User, project: &Project, id: &str) -> Answer<()> {
    let (project_id, id) = (project.id.clone(), id.to_owned());
    let request = user.call(DeleteEnvironmentRequest { project_id, id });
    user.environments().delete_environment(request).await.map(Response::into_inner)
}

async fn cases(user: &User, project: &Project, filter: ListFilter) -> Vec<TestCaseEntry> {
    let project_id = project.id.clone();
    let request =
        user.call(ListTestCasesRequest { project_id, filter: filter.into(), ..Default::default() });
    listed(user.cases().list_test_cases(request).await).await.unwrap().0
}

/// The errors of reading a test case, a plan and a set.
async fn faults(user: &User, case: &TestCase, plan: &TestPlan, set: &TestSet) -> Vec<String> {
    let case = user.find_case(None, &case.id).await;
    let request = GetTestPlanRequest { project_id: None, test_case_id: None, id: plan.id.clone() };
    let plan = user.plans().get_test_plan(user.call(request)).await;
    vec![fault(case), fault(plan), fault(user.get_set(&set.id).await)]
}

/// The nouns and actions of the events after the first `since`.
async fn events_since(world: &World, since: usize) -> Vec<(String, String)> {
    let events = world.events().await.into_iter().skip(since);
    events.map(|(noun, action, _)| (noun, action)).collect()
}

fn event(noun: &str, action: &str) -> (String, String) {
    (noun.to_owned(), action.to_owned())
}

#[tokio::test]
async fn deleting_a_project_deletes_its_content() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let other = user.project().await;
    let case = user.case(&project, "login").await;
    let plan = user.ready_plan(&case).await;
    let set = user.set(&project, &[&case]).await;
    let subject = user.subject(&project).await;
    let environment = user.environment(&project).await;
    let kept = user.case(&other, "login").await;
    let since = world.events().await.len();

    delete_project(&user, &project).await.unwrap();
    assert_eq!(events_since(&world, since).await, [event("project", "deleted")]);
    assert_eq!(faults(&user, &case, &plan, &set).await, ["not_found"; 3]);
    let request = user.call(GetProjectRequest { id: project.id.clone() });
    assert_eq!(fault(user.projects().get_project(request).await), "not_found");
    let (project_id, id) = (project.id.clone(), subject.id);
    let request = user.call(GetSubjectRequest { project_id, id });
    assert_eq!(fault(user.subjects().get_subject(request).await), "not_found");
    let (project_id, id) = (project.id.clone(), environment.id);
    let request = user.call(GetEnvironmentRequest { project_id, id });
    assert_eq!(fault(user.environments().get_environment(request).await), "not_found");
    let new = TestCaseInput { name: "x".into(), ..TestCaseInput::default() };
    assert_eq!(fault(user.create_case(&project.id, new).await), "not_found");
    assert_eq!(fault(delete_project(&user, &project).await), "not_found");

    let request = user.call(ListProjectsRequest { page: None, filter: 0 });
    let (projects, _) = listed(user.projects().list_projects(request).await).await.unwrap();
    assert_eq!(projects.into_iter().map(|project| project.id).collect::<Vec<_>>(), [other.id]);
    assert_eq!(user.get_case(&kept.id).await, kept);
}

#[tokio::test]
async fn deleting_a_test_case_deletes_its_plans_and_removes_it_from_sets() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let [a, b] = [user.case(&project, "a").await, user.case(&project, "b").await];
    let plan = user.ready_plan(&a).await;
    let set = user.set(&project, &[&a, &b]).await;
    let untouched = user.set(&project, &[&b]).await;
    let since = world.events().await.len();

    delete_case(&user, &project, &a.id).await.unwrap();
    let expected = [event("test_case", "deleted"), event("test_set", "changed")];
    assert_eq!(events_since(&world, since).await, expected);
    let left = user.get_set(&set.id).await.unwrap();
    assert_eq!(left.test_cases.iter().map(|case| &*case.id).collect::<Vec<_>>(), [&*b.id]);
    assert_ne!(left.data_version, set.data_version);
    assert_eq!(user.get_set(&untouched.id).await.unwrap(), untouched);
    assert_eq!(cases(&user, &project, ListFilter::Unspecified).await.len(), 1);
    delete_set(&user, &project, &set.id).await.unwrap();
    assert_eq!(faults(&user, &a, &plan, &set).await, ["not_found"; 3]);
    assert_eq!(fault(user.create_plan(&a, TestPlanInput::default()).await), "not_found");
    assert_eq!(fault(delete_case(&user, &project, &a.id).await), "not_found");
}

#[tokio::test]
async fn the_identifier_of_a_deleted_case_can_be_used_again() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let first = user.case(&project, "login").await;
    delete_case(&user, &project, &first.id).await.unwrap();
    let second = user.case(&project, "login").await;
    assert_ne!(first.id, second.id);
    let back = user.update_case(&first, TestCaseInput::default(), &["Archived"]).await;
    assert_eq!(fault(back), "not_found");
}

#[tokio::test]
async fn an_archived_case_can_be_deleted() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let case = user.case(&project, "a").await;
    let case = user.archive_case(&case).await;
    assert_eq!(cases(&user, &project, ListFilter::Archive).await.len(), 1);
    delete_case(&user, &project, &case.id).await.unwrap();
    assert_eq!(cases(&user, &project, ListFilter::Archive).await, []);
}

#[tokio::test]
async fn deleting_a_set_keeps_its_cases() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let case = user.case(&project, "a").await;
    let set = user.set(&project, &[&case]).await;
    let since = world.events().await.len();
    delete_set(&user, &project, &set.id).await.unwrap();
    assert_eq!(events_since(&world, since).await, [event("test_set", "deleted")]);
    assert_eq!(user.get_case(&case.id).await, case);
    assert_eq!(fault(user.get_set(&set.id).await), "not_found");
    assert_eq!(fault(delete_set(&user, &project, &set.id).await), "not_found");
}

#[tokio::test]
async fn deleting_a_subject_clears_references_to_it() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let id = user.subject(&project).await.id;
    let built_upon = SubjectInput { base_subject_id: Some(id.clone()), ..web_page() };
    let built_upon = user.create_subject(&project, built_upon).await.unwrap();
    let image = EnvironmentInput {
        name: "Image".into(),
        contained_subject: Some(id.clone()),
        ..EnvironmentInput::default()
    };
    let image = user.create_environment(&project, image).await.unwrap();
    let selecting = TestSetInput {
        name: "Nightly".into(),
        selected_subject_id: Some(id.clone()),
        ..TestSetInput::default()
    };
    let set = user.create_set(&project, selecting).await.unwrap();
    let before = user.get_set(&set.id).await.unwrap();
    let since = world.events().await.len();

    delete_subject(&user, &project, &id).await.unwrap();
    let expected = [
        event("subject", "deleted"),
        event("test_set", "changed"),
        event("environment", "changed"),
        event("subject", "changed"),
    ];
    assert_eq!(events_since(&world, since).await, expected);
    let after = user.get_set(&set.id).await.unwrap();
    assert_eq!(after.selected_subject_id, None);
    assert_ne!(after.data_version, before.data_version);
    let built_upon = user.get_subject(&project, &built_upon.id).await;
    assert_eq!((built_upon.base_subject_id, built_upon.base_subject_identifier), (None, None));
    assert_eq!(user.get_environment(&project, &image.id).await.contained_subject, None);
    assert_eq!(fault(delete_subject(&user, &project, &id).await), "not_found");
}

#[tokio::test]
async fn deleting_an_environment_clears_the_selection_in_sets() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let id = user.environment(&project).await.id;
    let selecting = TestSetInput {
        name: "Nightly".into(),
        selected_environment_id: Some(id.clone()),
        ..TestSetInput::default()
    };
    let set = user.create_set(&project, selecting).await.unwrap();
    delete_environment(&user, &project, &id).await.unwrap();
    assert_eq!(user.get_set(&set.id).await.unwrap().selected_environment_id, None);
    assert_eq!(fault(delete_environment(&user, &project, &id).await), "not_found");
}

#[tokio::test]
async fn a_deletion_needs_the_project_of_the_record_and_the_write_permission() {
    let world = World::start().await;
    let user = world.user().await;
    let (project, other) = (user.project().await, user.project().await);
    let case = user.case(&project, "a").await;
    assert_eq!(fault(delete_case(&user, &other, &case.id).await), "not_found");
    let stranger = world.user().await;
    assert_eq!(fault(delete_case(&stranger, &project, &case.id).await), "not_found");
    assert_eq!(fault(delete_project(&stranger, &project).await), "not_found");
    let reader = world.colleague(&user, "Read").await;
    assert_eq!(fault(delete_case(&reader, &project, &case.id).await), "forbidden");
    assert_eq!(user.get_case(&case.id).await, case);
}

#[tokio::test]
async fn concurrent_deletions_and_changes_do_not_deadlock() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let subject = user.subject(&project).await;
    let mut all = Vec::new();
    for n in 0..12 {
        all.push(user.case(&project, &format!("case-{n}")).await);
    }
    let set = user.set(&project, &all.iter().collect::<Vec<_>>()).await;
    let deleting = async {
        for case in &all[..6] {
            delete_case(&user, &project, &case.id).await?;
        }
        delete_subject(&user, &project, &subject.id).await
    };
    let replacing = async {
        for n in 0..20 {
            let kept = if n % 2 == 0 { &all[6..] } else { &all[8..] };
            let test_cases = kept.iter().map(|case| Reference { id: case.id.clone() }).collect();
            let input = TestSetInput { test_cases, ..TestSetInput::default() };
            let seen = user.get_set(&set.id).await?;
            match user.update_set(&seen, input, &["TestCases"]).await {
                // A case was removed from the set since it was read.
                Err(status) if status.code() == tonic::Code::Aborted => {}
                done => drop(done?),
            }
        }
        Ok::<_, tonic::Status>(())
    };
    let renaming = async {
        for case in all[6..].iter().rev() {
            let input = TestCaseInput { name: "Other".into(), ..TestCaseInput::default() };
            user.update_case(case, input, &["Name"]).await?;
        }
        Ok(())
    };
    tokio::try_join!(deleting, replacing, renaming).unwrap();
    let left = user.get_set(&set.id).await.unwrap();
    assert!(left.test_cases.iter().all(|case| all[6..].iter().any(|kept| kept.id == case.id)));
    delete_project(&user, &project).await.unwrap();
}
