//! Complete, paged and filtered lists.

use assay_proto::{Page, catalog::*};
use assay_testkit::assert_planned_once;

use crate::{
    user::User,
    world::{Answer, World, fault, invalid_fields, listed, page},
};

pub(crate) async fn cases(
    user: &User,
    project_id: &str,
    page: Option<Page>,
) -> Answer<(Vec<TestCaseEntry>, Option<String>)> {
    let request = user.call(ListTestCasesRequest {
        project_id: project_id.to_owned(),
        page,
        ..Default::default()
    });
    listed(user.cases().list_test_cases(request).await).await
}

fn identifiers(cases: &[TestCaseEntry]) -> Vec<&str> {
    cases.iter().map(|case| case.identifier.as_str()).collect()
}

#[tokio::test]
async fn cases_are_listed_newest_first_without_archived_ones() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    for identifier in ["a", "b", "c", "d"] {
        user.case(&project, identifier).await;
    }
    let (all, _) = cases(&user, &project.id, None).await.unwrap();
    assert_eq!(identifiers(&all), ["d", "c", "b", "a"]);
    user.archive_case(&user.get_case(&all[1].id).await).await;

    let (first, next) = cases(&user, &project.id, Some(page(2, None))).await.unwrap();
    assert_eq!(identifiers(&first), ["d", "b"]);
    let (second, next) = cases(&user, &project.id, Some(page(2, next))).await.unwrap();
    assert_eq!((identifiers(&second), next), (vec!["a"], None));
}

#[tokio::test]
async fn a_filter_matches_names_and_identifiers_as_plain_text() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    for (identifier, name) in [("a_1", "Log IN"), ("ab1", "100 %"), ("a\\c", "other")] {
        let case = TestCaseInput {
            name: name.into(),
            identifier: Some(identifier.into()),
            ..TestCaseInput::default()
        };
        user.create_case(&project.id, case).await.unwrap();
    }
    for (q, expected) in [
        ("log in", vec!["a_1"]),
        ("A_1", vec!["a_1"]),
        ("%", vec!["ab1"]),
        ("\\", vec!["a\\c"]),
        ("a", vec!["a\\c", "ab1", "a_1"]),
        ("nothing", vec![]),
    ] {
        let filter = Page { q: Some(q.into()), ..Page::default() };
        let (found, _) = cases(&user, &project.id, Some(filter)).await.unwrap();
        assert_eq!(identifiers(&found), expected, "{q}");
    }
}

#[tokio::test]
async fn the_list_of_an_unknown_project_is_not_found_and_that_of_a_new_project_is_empty() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    assert_eq!(cases(&user, &project.id, None).await.unwrap().0, []);
    let unknown = "01890a5d-ac96-774b-bcce-b302099a8057".to_owned();
    for project_id in [unknown, "nonsense".to_owned()] {
        assert_eq!(fault(cases(&user, &project_id, None).await), "not_found");
        assert_eq!(fault(cases(&user, &project_id, Some(page(5, None))).await), "not_found");
        let request = user.call(ListSubjectsRequest {
            project_id: project_id.clone(),
            page: None,
            archived: false,
        });
        assert_eq!(fault(listed(user.subjects().list_subjects(request).await).await), "not_found");
        let request = user.call(ListEnvironmentsRequest {
            project_id: project_id.clone(),
            page: None,
            archived: false,
        });
        let answer = user.environments().list_environments(request).await;
        assert_eq!(fault(listed(answer).await), "not_found");
        let request = user.call(ListTestSetsRequest { project_id, page: None, filter: 0 });
        assert_eq!(fault(listed(user.sets().list_test_sets(request).await).await), "not_found");
    }
}

#[tokio::test]
async fn a_page_has_1_to_1000_records() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    for limit in [0, -1, 1001] {
        let answer = cases(&user, &project.id, Some(page(limit, None))).await;
        assert_eq!(invalid_fields(answer), ["limit"]);
    }
    let answer = cases(&user, &project.id, Some(page(2, Some("0".into())))).await;
    assert_eq!(invalid_fields(answer), ["cursor"]);
}

/// Adds test cases to a project.
pub(crate) async fn add_cases(world: &World, user: &User, project: &Project, count: i32) {
    sqlx::query(
        "insert into test_case (customer_id, project_id, id, identifier, name, description)
         select $1, $2, gen_random_uuid(), 'case-' || n, 'Case ' || n, ''
         from generate_series(1, $3) n",
    )
    .bind(user.identity.customer)
    .bind(project.id.parse::<uuid::Uuid>().unwrap())
    .bind(count)
    .execute(&world.db)
    .await
    .unwrap();
}

/// A plan of its own for each page takes PostgreSQL as long as the page.
#[tokio::test]
async fn postgresql_plans_pages_once_also_when_it_has_statistics() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    add_cases(&world, &user, &project, 2_000).await;
    sqlx::query("analyze").execute(&world.db).await.unwrap();
    for _ in 0..200 {
        cases(&user, &project.id, Some(page(100, None))).await.unwrap();
    }
    assert_planned_once(&world.db, "%from test_case%limit 101%").await;
}

#[tokio::test]
async fn a_list_of_20_000_cases_is_complete() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    add_cases(&world, &user, &project, 20_000).await;
    let (all, next) = cases(&user, &project.id, None).await.unwrap();
    assert_eq!((all.len(), next), (20_000, None));
    assert!(all.is_sorted_by(|a, b| a.id > b.id));
}

#[tokio::test]
async fn subjects_are_listed_without_archived_ones() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let first = user.subject(&project).await;
    let second = user.subject(&project).await;
    let list = async || {
        let request = user.call(ListSubjectsRequest {
            project_id: project.id.clone(),
            page: None,
            archived: false,
        });
        listed(user.subjects().list_subjects(request).await).await.unwrap().0
    };
    assert_eq!(list().await, [second.clone(), first.clone()]);
    let subject = user.get_subject(&project, &second.id).await;
    let archived = SubjectInput { archived: true, ..SubjectInput::default() };
    user.update_subject(&subject, archived, &["Archived"]).await.unwrap();
    assert_eq!(list().await, [first]);
}
