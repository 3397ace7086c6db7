//! Any sequence of what users do to test cases and sets leaves all lists as a simple model of them
//! says: active list, archive, favorites, recent ones, the sets and who is in them.

mod real;

use assay_proto::catalog::*;
use proptest::{
    collection::vec,
    prelude::*,
    test_runner::{Config, TestRunner},
};

use self::real::Real;
use crate::{
    user::User,
    world::{World, fault},
};

/// How many sequences are tried.
const SEQUENCES: u32 = 24;

/// Something a user does. Numbers name records by the order of their creation.
#[derive(Clone, Debug)]
enum Deed {
    CreateCase { identifier: u8 },
    CreateSet { cases: Vec<usize> },
    Archive { kind: Kind, record: usize, archived: bool },
    Delete { kind: Kind, record: usize },
    Include { set: usize, cases: Vec<usize> },
    Exclude { set: usize, cases: Vec<usize> },
    Replace { set: usize, cases: Vec<usize> },
    Favorite { kind: Kind, record: usize, is_favorite: bool },
    Open { kind: Kind, record: usize },
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Case,
    Set,
}

impl Kind {
    fn record_kind(self) -> RecordKind {
        match self {
            Self::Case => RecordKind::TestCase,
            Self::Set => RecordKind::TestSet,
        }
    }
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let kind = || prop_oneof![Just(Kind::Case), Just(Kind::Set)];
    let record = || 0..4_usize;
    let cases = || vec(0..4_usize, 0..4);
    let deed = prop_oneof![
        4 => (0..8_u8).prop_map(|identifier| Deed::CreateCase { identifier }),
        2 => cases().prop_map(|cases| Deed::CreateSet { cases }),
        4 => (kind(), record(), any::<bool>())
            .prop_map(|(kind, record, archived)| Deed::Archive { kind, record, archived }),
        1 => (kind(), record()).prop_map(|(kind, record)| Deed::Delete { kind, record }),
        3 => (record(), cases()).prop_map(|(set, cases)| Deed::Include { set, cases }),
        2 => (record(), cases()).prop_map(|(set, cases)| Deed::Exclude { set, cases }),
        2 => (record(), cases()).prop_map(|(set, cases)| Deed::Replace { set, cases }),
        3 => (kind(), record(), any::<bool>())
            .prop_map(|(kind, record, is_favorite)| Deed::Favorite { kind, record, is_favorite }),
        3 => (kind(), record()).prop_map(|(kind, record)| Deed::Open { kind, record }),
    ];
    vec(deed, 40..80)
}

/// What the model knows of a record.
#[derive(Clone, Debug, Default)]
struct Known {
    id: String,
    identifier: u8,
    archived: bool,
    deleted: bool,
    is_favorite: bool,
    /// When it was opened last.
    opened: Option<usize>,
    /// The cases of a set, those in the archive among them.
    members: Vec<usize>,
}

impl Known {
    fn is_live(&self) -> bool {
        !self.archived && !self.deleted
    }
}

/// A project as it should be.
#[derive(Default)]
struct Model {
    cases: Vec<Known>,
    sets: Vec<Known>,
    clock: usize,
}

/// The names of the faults that a deed may end with; `None` for success.
type Outcome = Option<&'static str>;

impl Model {
    fn records(&mut self, kind: Kind) -> &mut Vec<Known> {
        match kind {
            Kind::Case => &mut self.cases,
            Kind::Set => &mut self.sets,
        }
    }

    /// The record of that number, unless it is gone.
    fn find(&mut self, kind: Kind, record: usize) -> Option<&mut Known> {
        self.records(kind).get_mut(record).filter(|record| !record.deleted)
    }

    fn is_taken(&self, identifier: u8) -> bool {
        self.cases.iter().any(|case| case.is_live() && case.identifier == identifier)
    }

    fn all(&self, cases: &[usize], which: fn(&Known) -> bool) -> bool {
        cases.iter().all(|case| self.cases.get(*case).is_some_and(which))
    }

    /// Does what the catalog should do.
    fn apply(&mut self, deed: &Deed) -> Outcome {
        self.clock += 1;
        match deed {
            Deed::CreateCase { identifier } => {
                if self.is_taken(*identifier) {
                    return Some("already_exists");
                }
                self.cases.push(Known { identifier: *identifier, ..Known::default() });
            }
            Deed::CreateSet { cases } => {
                if !self.all(cases, Known::is_live) {
                    return Some("invalid");
                }
                self.sets.push(Known { members: appended(Vec::new(), cases), ..Known::default() });
            }
            Deed::Archive { kind, record, archived } => {
                let Some(found) = self.find(*kind, *record) else { return Some("not_found") };
                let comes_back = found.archived && !archived;
                let identifier = found.identifier;
                if *kind == Kind::Case && comes_back && self.is_taken(identifier) {
                    return Some("already_exists");
                }
                self.records(*kind)[*record].archived = *archived;
            }
            Deed::Delete { kind, record } => {
                let Some(found) = self.find(*kind, *record) else { return Some("not_found") };
                found.deleted = true;
                if *kind == Kind::Case {
                    self.sets.iter_mut().for_each(|set| set.members.retain(|case| case != record));
                }
            }
            Deed::Include { set, cases } => {
                return self.change_members(*set, cases, Known::is_live, |_, members| {
                    appended(members, cases)
                });
            }
            Deed::Exclude { set, cases } => {
                let is_known = |case: &Known| !case.deleted;
                return self.change_members(*set, cases, is_known, |_, members| {
                    members.into_iter().filter(|case| !cases.contains(case)).collect()
                });
            }
            Deed::Replace { set, cases } => {
                return self.change_members(*set, cases, Known::is_live, |all, members| {
                    let hidden = members.into_iter().filter(|case| all[*case].archived);
                    appended(hidden.collect(), cases)
                });
            }
            Deed::Favorite { kind, record, is_favorite } => {
                let Some(found) = self.find(*kind, *record) else { return Some("not_found") };
                found.is_favorite = *is_favorite;
            }
            Deed::Open { kind, record } => {
                let clock = self.clock;
                let Some(found) = self.find(*kind, *record) else { return Some("not_found") };
                found.opened = Some(clock);
            }
        }
        None
    }

    fn change_members(
        &mut self,
        set: usize,
        cases: &[usize],
        allowed: fn(&Known) -> bool,
        change: impl FnOnce(&[Known], Vec<usize>) -> Vec<usize>,
    ) -> Outcome {
        let Some(found) = self.find(Kind::Set, set) else { return Some("not_found") };
        let members = found.members.clone();
        if !self.all(cases, allowed) {
            return Some("invalid");
        }
        self.sets[set].members = change(&self.cases, members);
        None
    }

    /// The ids of the records of a kind on a shelf, in the order of the list.
    fn shelf(&self, kind: Kind, on: Shelf) -> Vec<String> {
        let records = match kind {
            Kind::Case => &self.cases,
            Kind::Set => &self.sets,
        };
        let is_there = |record: &&Known| match on {
            Shelf::Unspecified => record.is_live(),
            Shelf::Archive => record.archived && !record.deleted,
            Shelf::Favorites => record.is_live() && record.is_favorite,
            Shelf::Recent => record.is_live() && record.opened.is_some(),
        };
        let mut records: Vec<&Known> = records.iter().filter(is_there).rev().collect();
        if on == Shelf::Recent {
            records.sort_by_key(|record| std::cmp::Reverse(record.opened));
        }
        records.into_iter().map(|record| record.id.clone()).collect()
    }

    /// The ids of the cases that a set shows, in its order.
    fn members(&self, set: &Known) -> Vec<String> {
        let live = set.members.iter().filter(|case| self.cases[**case].is_live());
        live.map(|case| self.cases[*case].id.clone()).collect()
    }
}

/// These members, and after them those of `cases` that are none yet.
fn appended(mut members: Vec<usize>, cases: &[usize]) -> Vec<usize> {
    for case in cases {
        if !members.contains(case) {
            members.push(*case);
        }
    }
    members
}

/// Does the deeds in a new project, and to a model of it.
async fn compare(user: &User, deeds: &[Deed]) {
    let nobody = "01890a5d-ac96-774b-bcce-b302099a8057".to_owned();
    let real = Real { user, project: user.project().await, nobody };
    let mut model = Model::default();
    for deed in deeds {
        let answer = real.apply(deed, &model).await;
        let expected = model.apply(deed);
        let outcome = match answer {
            Ok(Some(id)) if expected.is_none() => {
                let kind =
                    if matches!(deed, Deed::CreateCase { .. }) { Kind::Case } else { Kind::Set };
                model.records(kind).last_mut().expect("it was made").id = id;
                None
            }
            Ok(_) => None,
            answer => Some(fault(answer)),
        };
        assert_eq!(outcome.as_deref(), expected, "{deed:?}");
    }
    real.is_as(&model).await;
}

#[test]
fn lists_are_consistent_whatever_users_do() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let world = runtime.block_on(World::start());
    let user = runtime.block_on(world.user());
    let config = Config { cases: SEQUENCES, failure_persistence: None, ..Config::default() };
    TestRunner::new(config)
        .run(&deeds(), |deeds| {
            runtime.block_on(compare(&user, &deeds));
            Ok(())
        })
        .unwrap();
}
