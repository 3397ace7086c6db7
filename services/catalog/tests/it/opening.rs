//! Recently opened records.

use assay_proto::{Batch as _, Page, catalog::*};
use assay_testkit::eventually;
use futures::TryStreamExt as _;

use crate::{
    lookup::find,
    user::User,
    world::{World, invalid_fields, page},
};

impl User {
    pub(crate) async fn open(&self, kind: RecordKind, id: &str) {
        let id = id.to_owned();
        match kind {
            RecordKind::TestCase => {
                self.get_case(&id).await;
            }
            RecordKind::TestSet => {
                let request = GetTestSetRequest { project_id: None, id };
                self.sets().get_test_set(self.call(request)).await.unwrap();
            }
            RecordKind::Project | RecordKind::Unspecified => {
                let request = GetProjectRequest { id };
                self.projects().get_project(self.call(request)).await.unwrap();
            }
        }
    }

    /// Waits until the list of recent records equals `ids`.
    pub(crate) async fn has_opened(&self, kind: RecordKind, project_id: &str, ids: &[String]) {
        eventually("openings to be written", async || {
            (self.filtered(kind, project_id, ListFilter::Recent).await == ids).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn openings_of_a_deleted_customer_are_not_kept() {
    let world = World::start().await;
    let (leaving, staying) = (world.user().await, world.user().await);
    let (deleted, kept) = (leaving.project().await, staying.project().await);
    leaving.open(RecordKind::Project, &deleted.id).await;
    let mut tx = assay_database::begin(&world.db).await.unwrap();
    assay_catalog::delete_customer(&mut tx, leaving.identity.customer).await.unwrap();
    tx.commit().await.unwrap();

    // Openings are written in the order of their times, or together.
    staying.open(RecordKind::Project, &kept.id).await;
    staying.has_opened(RecordKind::Project, &kept.id, std::slice::from_ref(&kept.id)).await;
    let left = sqlx::query_scalar("select count(*) from opening where customer_id = $1");
    let left: i64 = left.bind(leaving.identity.customer).fetch_one(&world.db).await.unwrap();
    assert_eq!(left, 0);
}

#[tokio::test]
async fn recent_records_are_listed_latest_first() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let mut ids = Vec::new();
    for identifier in ["a", "b", "c"] {
        ids.push(user.case(&project, identifier).await.id);
    }
    for index in [0, 1, 2, 0] {
        user.open(RecordKind::TestCase, &ids[index]).await;
    }
    let expected = [ids[0].clone(), ids[2].clone(), ids[1].clone()];
    user.has_opened(RecordKind::TestCase, &project.id, &expected).await;
    user.open(RecordKind::Project, &project.id).await;
    user.has_opened(RecordKind::Project, &project.id, std::slice::from_ref(&project.id)).await;
    let set = user.set(&project, &[]).await;
    user.open(RecordKind::TestSet, &set.id).await;
    user.has_opened(RecordKind::TestSet, &project.id, &[set.id]).await;

    let colleague = world.colleague(&user, "Read").await;
    assert!(
        colleague.filtered(RecordKind::TestCase, &project.id, ListFilter::Recent).await.is_empty()
    );
    let elsewhere = user.project().await;
    assert!(
        user.filtered(RecordKind::TestCase, &elsewhere.id, ListFilter::Recent).await.is_empty()
    );
}

#[tokio::test]
async fn a_read_by_another_service_is_not_an_opening() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let [first, second] = [user.case(&project, "a").await, user.case(&project, "b").await];
    let request = FindRecordsRequest {
        project_id: project.id.clone(),
        test_case_id: Some(first.id),
        ..FindRecordsRequest::default()
    };
    find(&user, request).await.unwrap();
    user.open(RecordKind::TestCase, &second.id).await;
    user.has_opened(RecordKind::TestCase, &project.id, &[second.id]).await;
}

#[tokio::test]
async fn a_read_with_an_api_token_is_not_an_opening() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let [first, second] = [user.case(&project, "a").await, user.case(&project, "b").await];
    world.with_api_token(&user).await.open(RecordKind::TestCase, &first.id).await;
    user.open(RecordKind::TestCase, &second.id).await;
    user.has_opened(RecordKind::TestCase, &project.id, &[second.id]).await;
}

#[tokio::test]
async fn up_to_20_active_records_are_recent() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let mut cases = Vec::new();
    for number in 0..26 {
        cases.push(user.case(&project, &format!("case-{number}")).await);
        user.open(RecordKind::TestCase, &cases[number].id).await;
    }
    let newest = |cases: &[TestCase]| -> Vec<String> {
        cases.iter().rev().take(20).map(|case| case.id.clone()).collect()
    };
    user.has_opened(RecordKind::TestCase, &project.id, &newest(&cases)).await;
    for _ in 0..5 {
        user.archive_case(&cases.pop().unwrap()).await;
    }
    let expected = newest(&cases);
    user.has_opened(RecordKind::TestCase, &project.id, &expected).await;

    let list = async |page| {
        user.filtered_page(RecordKind::TestCase, &project.id, ListFilter::Recent, Some(page)).await
    };
    let (first, next) = list(page(15, None)).await.unwrap();
    assert_eq!(first, expected[..15]);
    assert_eq!(list(page(15, next)).await.unwrap(), (expected[15..].to_vec(), None));
    let filter = Page { q: Some("CASE-7".into()), ..Page::default() };
    assert_eq!(list(filter).await.unwrap().0, [cases[7].id.clone()]);
    let strange = "01890a5d-ac96-774b-bcce-b302099a8057".to_owned();
    assert_eq!(invalid_fields(list(page(5, Some(strange))).await), ["cursor"]);
}

#[tokio::test]
async fn recent_records_are_read_at_once_as_openings_may_change_them_meanwhile() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let mut ids = Vec::new();
    for number in 0..20 {
        ids.insert(0, user.case(&project, &format!("case-{number}")).await.id);
        user.open(RecordKind::TestCase, &ids[0]).await;
    }
    user.has_opened(RecordKind::TestCase, &project.id, &ids).await;

    let mut request = ListTestCasesRequest { project_id: project.id, ..Default::default() };
    request.set_filter(ListFilter::Recent);
    let list = user.cases().list_test_cases(user.call(request)).await.unwrap().into_inner();
    let batches: Vec<_> = list.try_collect().await.unwrap();
    assert_eq!(batches.len(), 1);
    assert_eq!(batches[0].parse().unwrap().len(), 20);
}

#[tokio::test]
async fn only_the_latest_40_openings_are_stored() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let mut last = String::new();
    for number in 0..45 {
        last = user.case(&project, &format!("case-{number}")).await.id;
        user.open(RecordKind::TestCase, &last).await;
    }
    eventually("the last opening to be written", async || {
        let recent = user.filtered(RecordKind::TestCase, &project.id, ListFilter::Recent).await;
        (recent.first() == Some(&last)).then_some(())
    })
    .await;
    let kept = sqlx::query_scalar::<_, i32>("select cardinality(record_ids) from opening");
    assert_eq!(kept.fetch_one(&world.db).await.unwrap(), 40);
}

#[tokio::test]
async fn a_read_succeeds_if_openings_cannot_be_stored() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    sqlx::query("alter table opening rename to broken").execute(&world.db).await.unwrap();
    user.open(RecordKind::Project, &project.id).await;
    user.open(RecordKind::Project, &project.id).await;
    sqlx::query("alter table broken rename to opening").execute(&world.db).await.unwrap();
    eventually("an opening to be written again", async || {
        user.open(RecordKind::Project, &project.id).await;
        let recent = user.filtered(RecordKind::Project, "", ListFilter::Recent).await;
        (recent == [project.id.clone()]).then_some(())
    })
    .await;
}
