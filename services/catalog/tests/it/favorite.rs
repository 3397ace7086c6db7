//! Favorites.

use assay_proto::{Page, catalog::*};

use crate::{
    user::User,
    world::{Answer, World, fault, invalid_fields, listed, page},
};

const KINDS: [RecordKind; 3] = [RecordKind::Project, RecordKind::TestCase, RecordKind::TestSet];

impl User {
    pub(crate) async fn add_favorite(&self, kind: RecordKind, id: &str) -> Answer<()> {
        let favorite = Some(FavoriteInput { foreign_id: id.to_owned() });
        let request = AddFavoriteRequest { kind: kind.into(), favorite };
        self.favorites().add_favorite(self.call(request)).await.map(drop)
    }

    pub(crate) async fn remove_favorite(&self, kind: RecordKind, id: &str) -> Answer<()> {
        let request = RemoveFavoriteRequest { kind: kind.into(), id: id.to_owned() };
        self.favorites().remove_favorite(self.call(request)).await.map(drop)
    }

    /// The ids of the records of a kind in a list, and the cursor of the next page.
    pub(crate) async fn filtered_page(
        &self,
        kind: RecordKind,
        project_id: &str,
        on: ListFilter,
        page: Option<Page>,
    ) -> Answer<(Vec<String>, Option<String>)> {
        let (project_id, on) = (project_id.to_owned(), on.into());
        match kind {
            RecordKind::TestCase => {
                let request = self.call(ListTestCasesRequest {
                    project_id,
                    page,
                    filter: on,
                    ..Default::default()
                });
                let (cases, next) = listed(self.cases().list_test_cases(request).await).await?;
                Ok((cases.into_iter().map(|case| case.id).collect(), next))
            }
            RecordKind::TestSet => {
                let request = self.call(ListTestSetsRequest { project_id, page, filter: on });
                let (sets, next) = listed(self.sets().list_test_sets(request).await).await?;
                Ok((sets.into_iter().map(|set| set.id).collect(), next))
            }
            RecordKind::Project | RecordKind::Unspecified => {
                let request = self.call(ListProjectsRequest { page, filter: on });
                let (projects, next) = listed(self.projects().list_projects(request).await).await?;
                Ok((projects.into_iter().map(|project| project.id).collect(), next))
            }
        }
    }

    /// The ids of the records of a kind in a list.
    pub(crate) async fn filtered(
        &self,
        kind: RecordKind,
        project_id: &str,
        on: ListFilter,
    ) -> Vec<String> {
        self.filtered_page(kind, project_id, on, None).await.unwrap().0
    }
}

#[tokio::test]
async fn each_user_has_separate_favorites() {
    let world = World::start().await;
    let user = world.user().await;
    let colleague = world.colleague(&user, "Read").await;
    let project = user.project().await;
    let case = user.case(&project, "login").await;
    let set = user.set(&project, &[]).await;
    let favorites = async |user: &User| {
        let mut all = Vec::new();
        for kind in KINDS {
            all.extend(user.filtered(kind, &project.id, ListFilter::Favorites).await);
        }
        all
    };
    assert_eq!(favorites(&user).await, Vec::<String>::new());
    let ids = [&project.id, &case.id, &set.id];
    for (kind, id) in KINDS.into_iter().zip(ids) {
        user.add_favorite(kind, id).await.unwrap();
        user.add_favorite(kind, id).await.expect("adding a favorite is idempotent");
    }
    assert_eq!(favorites(&user).await, ids.map(Clone::clone));
    assert_eq!(favorites(&colleague).await, Vec::<String>::new());
    for (kind, id) in KINDS.into_iter().zip(ids) {
        colleague.remove_favorite(kind, id).await.expect("removing a favorite is idempotent");
    }
    assert_eq!(favorites(&user).await.len(), 3);
    for (kind, id) in KINDS.into_iter().zip(ids) {
        user.remove_favorite(kind, id).await.unwrap();
        user.remove_favorite(kind, id).await.unwrap();
    }
    assert_eq!(favorites(&user).await, Vec::<String>::new());
}

#[tokio::test]
async fn favorites_need_no_permission_but_lists_need_the_read_permission() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let colleague = world.colleague(&user, "UserSettings").await;
    colleague.add_favorite(RecordKind::Project, &project.id).await.unwrap();
    let listed =
        colleague.filtered_page(RecordKind::Project, "", ListFilter::Favorites, None).await;
    assert_eq!(fault(listed), "forbidden");
}

#[tokio::test]
async fn only_existing_records_can_be_favorites() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let case = user.case(&project, "login").await;
    let stranger = world.user().await;
    let unknown = "01890a5d-ac96-774b-bcce-b302099a8057";
    for kind in KINDS {
        for id in [unknown, "0", "nonsense"] {
            assert_eq!(fault(user.add_favorite(kind, id).await), "not_found");
            assert_eq!(fault(user.remove_favorite(kind, id).await), "not_found");
        }
        assert_eq!(invalid_fields(user.add_favorite(kind, "").await), ["ForeignId"]);
    }
    assert_eq!(fault(user.add_favorite(RecordKind::TestSet, &case.id).await), "not_found");
    assert_eq!(fault(stranger.add_favorite(RecordKind::TestCase, &case.id).await), "not_found");
}

#[tokio::test]
async fn favorites_are_listed_in_pages_and_filtered_like_other_lists() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let mut expected = Vec::new();
    for identifier in ["a1", "a2", "b3", "a4"] {
        let case = user.case(&project, identifier).await;
        if identifier.starts_with('a') {
            user.add_favorite(RecordKind::TestCase, &case.id).await.unwrap();
            expected.insert(0, case.id);
        }
    }
    let list = async |page| {
        let filter = ListFilter::Favorites;
        user.filtered_page(RecordKind::TestCase, &project.id, filter, Some(page)).await.unwrap()
    };
    let (first, next) = list(page(2, None)).await;
    assert_eq!(first, expected[..2]);
    assert_eq!(list(page(2, next)).await, (vec![expected[2].clone()], None));
    let filter = Page { q: Some("A2".into()), ..Page::default() };
    assert_eq!(list(filter).await.0, [expected[1].clone()]);

    let elsewhere = user.project().await;
    assert!(
        user.filtered(RecordKind::TestCase, &elsewhere.id, ListFilter::Favorites).await.is_empty()
    );
}
