//! The archive lists, and the test sets of a test case.

use assay_proto::{Page, catalog::*};

use crate::{
    user::User,
    world::{Answer, World, fault, listed, page},
};

async fn sets_of(user: &User, case: &TestCase, archived: bool) -> Answer<Vec<String>> {
    let request = user.call(ListTestSetsOfTestCaseRequest {
        project_id: case.project_id.clone(),
        test_case_id: case.id.clone(),
        page: None,
        archived,
    });
    let (sets, _) = listed(user.sets().list_test_sets_of_test_case(request).await).await?;
    Ok(sets.into_iter().map(|set| set.id).collect())
}

fn filter(archived: bool) -> i32 {
    if archived { ListFilter::Archive.into() } else { ListFilter::Unspecified.into() }
}

#[tokio::test]
async fn archived_cases_are_listed_only_in_the_archive() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    for identifier in ["a", "b", "c", "d"] {
        let case = user.case(&project, identifier).await;
        if identifier != "c" {
            user.archive_case(&case).await;
        }
    }
    let list = async |archived, page| {
        let project_id = project.id.clone();
        let request = user.call(ListTestCasesRequest {
            project_id,
            page,
            filter: filter(archived),
            ..Default::default()
        });
        let (cases, next) = listed(user.cases().list_test_cases(request).await).await.unwrap();
        (cases.into_iter().map(|case| case.identifier).collect::<Vec<_>>(), next)
    };
    assert_eq!(list(false, None).await.0, ["c"]);
    assert_eq!(list(true, None).await.0, ["d", "b", "a"]);
    let (first, next) = list(true, Some(page(2, None))).await;
    assert_eq!(first, ["d", "b"]);
    assert_eq!(list(true, Some(page(2, next))).await, (vec!["a".to_owned()], None));
    let filter = Page { q: Some("B".into()), ..Page::default() };
    assert_eq!(list(true, Some(filter)).await.0, ["b"]);
}

#[tokio::test]
async fn archived_records_of_each_kind_are_listed_only_in_the_archive() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let project_id = || project.id.clone();
    let set = user.set(&project, &[]).await;
    let input = TestSetInput { archived: true, ..TestSetInput::default() };
    user.update_set(&set, input, &["Archived"]).await.unwrap();
    let subject = user.subject(&project).await;
    let subject = user.get_subject(&project, &subject.id).await;
    let input = SubjectInput { archived: true, ..SubjectInput::default() };
    user.update_subject(&subject, input, &["Archived"]).await.unwrap();
    let environment = user.environment(&project).await;
    let environment = user.get_environment(&project, &environment.id).await;
    let input = EnvironmentInput { archived: true, ..EnvironmentInput::default() };
    user.update_environment(&environment, input, &["Archived"]).await.unwrap();
    let changes = Some(ProjectInput { archived: true, ..ProjectInput::default() });
    let fields = vec!["Archived".to_owned()];
    let request = UpdateProjectRequest { id: project_id(), data_version: None, changes, fields };
    user.projects().update_project(user.call(request)).await.unwrap();

    for archived in [false, true] {
        let (page, filter) = (None, filter(archived));
        let request = user.call(ListProjectsRequest { page, filter });
        let (projects, _) = listed(user.projects().list_projects(request).await).await.unwrap();
        let request =
            user.call(ListTestSetsRequest { project_id: project_id(), page: None, filter });
        let (sets, _) = listed(user.sets().list_test_sets(request).await).await.unwrap();
        let request =
            user.call(ListSubjectsRequest { project_id: project_id(), page: None, archived });
        let (subjects, _) = listed(user.subjects().list_subjects(request).await).await.unwrap();
        let request =
            user.call(ListEnvironmentsRequest { project_id: project_id(), page: None, archived });
        let environments = user.environments().list_environments(request).await;
        let (environments, _) = listed(environments).await.unwrap();
        let counts = [projects.len(), sets.len(), subjects.len(), environments.len()];
        assert_eq!(counts, [usize::from(archived); 4], "archived: {archived}");
    }
}

#[tokio::test]
async fn the_sets_of_a_case_are_the_active_sets_that_include_it() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let [a, b] = [user.case(&project, "a").await, user.case(&project, "b").await];
    let [first, second, _] = [
        user.set(&project, &[&a, &b]).await,
        user.set(&project, &[&a]).await,
        user.set(&project, &[&b]).await,
    ];
    let gone = user.set(&project, &[&a]).await;
    let input = TestSetInput { archived: true, ..TestSetInput::default() };
    user.update_set(&gone, input, &["Archived"]).await.unwrap();
    let sets = [second.id, first.id];
    assert_eq!(sets_of(&user, &a, false).await.unwrap(), sets);
    assert_eq!(sets_of(&user, &a, true).await.unwrap(), Vec::<String>::new());

    let archived = user.archive_case(&a).await;
    assert_eq!(sets_of(&user, &archived, false).await.unwrap(), Vec::<String>::new());
    assert_eq!(sets_of(&user, &archived, true).await.unwrap(), sets);
    let elsewhere = TestCase { project_id: user.project().await.id, ..archived };
    assert_eq!(fault(sets_of(&user, &elsewhere, true).await), "not_found");
}
