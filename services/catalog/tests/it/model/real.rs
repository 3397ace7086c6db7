//! The catalog's side of the comparison: applies the actions through gRPC.

use assay_proto::{Reference, catalog::*};

use super::{Action, Kind, Model, Record};
use crate::{
    user::User,
    world::{Answer, listed},
};

/// A project in the catalog.
pub(super) struct Real<'a> {
    pub(super) user: &'a User,
    pub(super) project: Project,
    /// Id of a record that does not exist.
    pub(super) unknown_id: String,
}

impl Real<'_> {
    /// Applies the action to the catalog; returns the id of a new record.
    pub(super) async fn apply(&self, action: &Action, model: &Model) -> Answer<Option<String>> {
        let id = |kind, record: usize| {
            let records = if kind == Kind::Case { &model.cases } else { &model.sets };
            records.get(record).map_or(&self.unknown_id, |record| &record.id).clone()
        };
        let references = |cases: &[usize]| {
            cases.iter().map(|case| Reference { id: id(Kind::Case, *case) }).collect::<Vec<_>>()
        };
        let (user, project_id) = (self.user, self.project.id.clone());
        match action {
            Action::CreateCase { identifier } => {
                let case = TestCaseInput {
                    name: "Case".into(),
                    identifier: Some(format!("case-{identifier}")),
                    ..TestCaseInput::default()
                };
                return Ok(Some(user.create_case(&project_id, case).await?.id));
            }
            Action::CreateSet { cases } => {
                let test_cases = references(cases);
                let set = TestSetInput { name: "Set".into(), test_cases, ..Default::default() };
                return Ok(Some(user.create_set(&self.project, set).await?.id));
            }
            Action::Archive { kind: Kind::Case, record, archived } => {
                let id = id(Kind::Case, *record);
                let case = TestCase { id, project_id, ..TestCase::default() };
                let changes = TestCaseInput { archived: *archived, ..Default::default() };
                user.update_case(&case, changes, &["Archived"]).await?;
            }
            Action::Archive { kind: Kind::Set, record, archived } => {
                let changes = TestSetInput { archived: *archived, ..Default::default() };
                self.update_set(id(Kind::Set, *record), changes, "Archived").await?;
            }
            Action::Delete { kind: Kind::Case, record } => {
                let request = DeleteTestCaseRequest { project_id, id: id(Kind::Case, *record) };
                user.cases().delete_test_case(user.call(request)).await?;
            }
            Action::Delete { kind: Kind::Set, record } => {
                let request = DeleteTestSetRequest { project_id, id: id(Kind::Set, *record) };
                user.sets().delete_test_set(user.call(request)).await?;
            }
            Action::Include { set, cases } => {
                let (test_set_id, test_cases) = (id(Kind::Set, *set), references(cases));
                let request = IncludeTestCasesRequest { project_id, test_set_id, test_cases };
                user.sets().include_test_cases(user.call(request)).await?;
            }
            Action::Exclude { set, cases } => {
                let (test_set_id, test_cases) = (id(Kind::Set, *set), references(cases));
                let request = ExcludeTestCasesRequest { project_id, test_set_id, test_cases };
                user.sets().exclude_test_cases(user.call(request)).await?;
            }
            Action::Replace { set, cases } => {
                let changes = TestSetInput { test_cases: references(cases), ..Default::default() };
                self.update_set(id(Kind::Set, *set), changes, "TestCases").await?;
            }
            Action::Favorite { kind, record, is_favorite: true } => {
                user.add_favorite(kind.record_kind(), &id(*kind, *record)).await?;
            }
            Action::Favorite { kind, record, is_favorite: false } => {
                user.remove_favorite(kind.record_kind(), &id(*kind, *record)).await?;
            }
            Action::Open { kind: Kind::Case, record } => {
                user.find_case(None, &id(Kind::Case, *record)).await?;
            }
            Action::Open { kind: Kind::Set, record } => {
                let (project_id, id) = (None, id(Kind::Set, *record));
                let request = GetTestSetRequest { project_id, id };
                user.sets().get_test_set(user.call(request)).await?;
            }
        }
        Ok(None)
    }

    async fn update_set(&self, id: String, changes: TestSetInput, field: &str) -> Answer<()> {
        let request = UpdateTestSetRequest {
            project_id: self.project.id.clone(),
            id,
            data_version: None,
            changes: Some(changes),
            fields: vec![field.to_owned()],
        };
        self.user.sets().update_test_set(self.user.call(request)).await.map(drop)
    }

    /// Asserts that all lists equal those of the model.
    pub(super) async fn assert_equals(&self, model: &Model) {
        let (user, project) = (self.user, &self.project.id);
        for kind in [Kind::Case, Kind::Set] {
            for filter in [ListFilter::Unspecified, ListFilter::Archive, ListFilter::Favorites] {
                let listed = user.filtered(kind.record_kind(), project, filter).await;
                assert_eq!(listed, model.filtered(kind, filter), "{kind:?} {filter:?}");
            }
            let recent = model.filtered(kind, ListFilter::Recent);
            user.has_opened(kind.record_kind(), project, &recent).await;
        }
        for set in model.sets.iter().filter(|set| !set.deleted) {
            let request = ListIncludedTestCasesRequest {
                project_id: project.clone(),
                test_set_id: set.id.clone(),
                page: None,
            };
            let included = user.sets().list_included_test_cases(user.call(request)).await;
            let included = listed(included).await.unwrap().0.into_iter().map(|case| case.id);
            assert_eq!(included.collect::<Vec<_>>(), model.members(set));
        }
        for (number, case) in model.cases.iter().enumerate().filter(|(_, case)| !case.deleted) {
            let request = ListTestSetsOfTestCaseRequest {
                project_id: project.clone(),
                test_case_id: case.id.clone(),
                page: None,
                archived: case.archived,
            };
            let sets = user.sets().list_test_sets_of_test_case(user.call(request)).await;
            let sets = listed(sets).await.unwrap().0.into_iter().map(|set| set.id);
            let including = |set: &&Record| set.is_live() && set.members.contains(&number);
            let expected = model.sets.iter().filter(including).rev().map(|set| set.id.clone());
            assert_eq!(sets.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        }
    }
}
