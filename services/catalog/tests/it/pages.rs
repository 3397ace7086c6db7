//! Pages of test cases, several of which are read by one call.

use assay_proto::{Batch as _, Page, Replies as _, catalog::*};
use assay_testkit::assert_planned_once;
use futures::TryStreamExt as _;
use tonic::Code;

use crate::{
    list::{add_cases, cases},
    user::User,
    world::{Answer, World, page},
};

type Read = Result<Option<(Vec<TestCaseEntry>, Option<String>)>, Code>;

fn request(limit: i32, cursor: Option<&str>) -> Page {
    page(limit, cursor.map(ToOwned::to_owned))
}

async fn read(user: &User, project_id: &str, pages: Vec<Page>) -> Answer<Vec<Read>> {
    let request = BatchListTestCasesRequest { project_id: project_id.to_owned(), pages };
    let replies = user.cases().batch_list_test_cases(user.call(request)).await?.into_inner();
    let replies: Vec<_> = replies.try_collect().await?;
    let outcomes = replies.into_iter().flat_map(TestCasePageReplyBatch::into_outcomes);
    let parsed = |page: TestCaseBatch| (page.parse().unwrap(), page.next_cursor);
    Ok(outcomes.map(|page| page.map(|page| page.map(parsed)).map_err(|it| it.code())).collect())
}

#[tokio::test]
async fn pages_of_one_call_are_those_of_the_list() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    add_cases(&world, &user, &project, 250).await;
    let archived = user.case(&project, "archived").await;
    user.archive_case(&archived).await;
    let (all, _) = cases(&user, &project.id, None).await.unwrap();
    let after = |index: usize| Some(&*all[index].id);

    let mut pages: Vec<_> = [
        (100, None),
        (100, after(99)),
        (100, after(199)),
        (1, None),
        (50, after(199)),
        (7, after(249)),
    ]
    .map(|(limit, cursor)| request(limit, cursor))
    .into();
    let mut expected = Vec::new();
    for page in &pages {
        expected.push(Ok(Some(cases(&user, &project.id, Some(page.clone())).await.unwrap())));
    }
    let whole = Page::default();
    let search = Page { q: Some("case".to_owned()), ..request(100, None) };
    let unknown = request(100, Some("no cursor"));
    for wrong in [request(0, None), request(101, None), unknown, whole, search] {
        pages.insert(1, wrong);
        expected.insert(1, Err(Code::InvalidArgument));
    }
    assert_eq!(read(&user, &project.id, pages).await.unwrap(), expected);
}

#[tokio::test]
async fn pages_are_those_of_an_existing_project_of_the_caller() {
    let world = World::start().await;
    let (user, stranger) = (world.user().await, world.user().await);
    let project = user.project().await;
    let pages = || vec![request(100, None); 2];
    let empty = Ok(Some((Vec::new(), None)));
    assert_eq!(read(&user, &project.id, pages()).await.unwrap(), [empty.clone(), empty]);

    user.case(&project, "one").await;
    let missing = read(&stranger, &project.id, pages()).await.unwrap_err();
    assert_eq!(missing.code(), Code::NotFound);
    let too_many = read(&user, &project.id, vec![request(100, None); 65]).await.unwrap_err();
    assert_eq!(too_many.code(), Code::InvalidArgument);
}

#[tokio::test]
async fn pages_that_do_not_fit_into_the_response_are_left_out() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    for number in 0..8 {
        let (name, description) = (number.to_string(), "d".repeat(64 << 10));
        let case = TestCaseInput { name, description, ..TestCaseInput::default() };
        user.create_case(&project.id, case).await.unwrap();
    }
    let pages = vec![request(2, None), request(5, None), request(8, None), request(1, None)];
    let pages = read(&user, &project.id, pages).await.unwrap();
    let counts: Vec<_> =
        pages.into_iter().map(|page| page.unwrap().map(|(cases, _)| cases.len())).collect();
    assert_eq!(counts, [Some(2), Some(5), None, None]);
}

/// A plan of its own for each call takes PostgreSQL as long as a page.
#[tokio::test]
async fn postgresql_plans_pages_of_one_call_once() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    add_cases(&world, &user, &project, 2_000).await;
    sqlx::query("analyze").execute(&world.db).await.unwrap();
    for count in 0..100 {
        let pages = vec![request(100, None); count % 4 + 1];
        read(&user, &project.id, pages).await.unwrap();
    }
    assert_planned_once(&world.db, "%as page (before, rows, position)%").await;
}
