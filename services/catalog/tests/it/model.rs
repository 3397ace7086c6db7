//! Model test: after any sequence of actions on test cases and sets, all lists (active, archive,
//! favorites, recent, members of sets) equal those of a simple model.

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

/// Number of sequences to try.
const SEQUENCES: u32 = 24;

/// An action of a user. Records are numbered in the order of their creation.
#[derive(Clone, Debug)]
enum Action {
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

fn actions() -> impl Strategy<Value = Vec<Action>> {
    let kind = || prop_oneof![Just(Kind::Case), Just(Kind::Set)];
    let record = || 0..4_usize;
    let cases = || vec(0..4_usize, 0..4);
    let action = prop_oneof![
        4 => (0..8_u8).prop_map(|identifier| Action::CreateCase { identifier }),
        2 => cases().prop_map(|cases| Action::CreateSet { cases }),
        4 => (kind(), record(), any::<bool>())
            .prop_map(|(kind, record, archived)| Action::Archive { kind, record, archived }),
        1 => (kind(), record()).prop_map(|(kind, record)| Action::Delete { kind, record }),
        3 => (record(), cases()).prop_map(|(set, cases)| Action::Include { set, cases }),
        2 => (record(), cases()).prop_map(|(set, cases)| Action::Exclude { set, cases }),
        2 => (record(), cases()).prop_map(|(set, cases)| Action::Replace { set, cases }),
        3 => (kind(), record(), any::<bool>())
            .prop_map(|(kind, record, is_favorite)| Action::Favorite { kind, record, is_favorite }),
        3 => (kind(), record()).prop_map(|(kind, record)| Action::Open { kind, record }),
    ];
    vec(action, 40..80)
}

/// A record in the model.
#[derive(Clone, Debug, Default)]
struct Record {
    id: String,
    identifier: u8,
    archived: bool,
    deleted: bool,
    is_favorite: bool,
    /// Time of the last opening, by the clock of the model.
    opened: Option<usize>,
    /// The cases of a set, including archived ones.
    members: Vec<usize>,
}

impl Record {
    fn is_live(&self) -> bool {
        !self.archived && !self.deleted
    }
}

/// The expected state of a project.
#[derive(Default)]
struct Model {
    cases: Vec<Record>,
    sets: Vec<Record>,
    clock: usize,
}

/// The code of the expected error; `None` for success.
type Outcome = Option<&'static str>;

impl Model {
    fn records(&mut self, kind: Kind) -> &mut Vec<Record> {
        match kind {
            Kind::Case => &mut self.cases,
            Kind::Set => &mut self.sets,
        }
    }

    /// Returns the record with that number unless it is deleted.
    fn find(&mut self, kind: Kind, record: usize) -> Option<&mut Record> {
        self.records(kind).get_mut(record).filter(|record| !record.deleted)
    }

    fn is_taken(&self, identifier: u8) -> bool {
        self.cases.iter().any(|case| case.is_live() && case.identifier == identifier)
    }

    fn all(&self, cases: &[usize], which: fn(&Record) -> bool) -> bool {
        cases.iter().all(|case| self.cases.get(*case).is_some_and(which))
    }

    /// Applies an action to the model.
    fn apply(&mut self, action: &Action) -> Outcome {
        self.clock += 1;
        match action {
            Action::CreateCase { identifier } => {
                if self.is_taken(*identifier) {
                    return Some("already_exists");
                }
                self.cases.push(Record { identifier: *identifier, ..Record::default() });
            }
            Action::CreateSet { cases } => {
                if !self.all(cases, Record::is_live) {
                    return Some("invalid");
                }
                self.sets
                    .push(Record { members: appended(Vec::new(), cases), ..Record::default() });
            }
            Action::Archive { kind, record, archived } => {
                let Some(found) = self.find(*kind, *record) else { return Some("not_found") };
                let comes_back = found.archived && !archived;
                let identifier = found.identifier;
                if *kind == Kind::Case && comes_back && self.is_taken(identifier) {
                    return Some("already_exists");
                }
                self.records(*kind)[*record].archived = *archived;
            }
            Action::Delete { kind, record } => {
                let Some(found) = self.find(*kind, *record) else { return Some("not_found") };
                found.deleted = true;
                if *kind == Kind::Case {
                    self.sets.iter_mut().for_each(|set| set.members.retain(|case| case != record));
                }
            }
            Action::Include { set, cases } => {
                return self.change_members(*set, cases, Record::is_live, |_, members| {
                    appended(members, cases)
                });
            }
            Action::Exclude { set, cases } => {
                let is_known = |case: &Record| !case.deleted;
                return self.change_members(*set, cases, is_known, |_, members| {
                    members.into_iter().filter(|case| !cases.contains(case)).collect()
                });
            }
            Action::Replace { set, cases } => {
                return self.change_members(*set, cases, Record::is_live, |all, members| {
                    let hidden = members.into_iter().filter(|case| all[*case].archived);
                    appended(hidden.collect(), cases)
                });
            }
            Action::Favorite { kind, record, is_favorite } => {
                let Some(found) = self.find(*kind, *record) else { return Some("not_found") };
                found.is_favorite = *is_favorite;
            }
            Action::Open { kind, record } => {
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
        allowed: fn(&Record) -> bool,
        change: impl FnOnce(&[Record], Vec<usize>) -> Vec<usize>,
    ) -> Outcome {
        let Some(found) = self.find(Kind::Set, set) else { return Some("not_found") };
        let members = found.members.clone();
        if !self.all(cases, allowed) {
            return Some("invalid");
        }
        self.sets[set].members = change(&self.cases, members);
        None
    }

    /// The ids of the records of a kind in a list, in its order.
    fn filtered(&self, kind: Kind, on: ListFilter) -> Vec<String> {
        let records = match kind {
            Kind::Case => &self.cases,
            Kind::Set => &self.sets,
        };
        let is_there = |record: &&Record| match on {
            // None of the actions runs a test case.
            ListFilter::Unspecified | ListFilter::NeverRun => record.is_live(),
            ListFilter::Archive => record.archived && !record.deleted,
            ListFilter::Favorites => record.is_live() && record.is_favorite,
            ListFilter::Recent => record.is_live() && record.opened.is_some(),
        };
        let mut records: Vec<&Record> = records.iter().filter(is_there).rev().collect();
        if on == ListFilter::Recent {
            records.sort_by_key(|record| std::cmp::Reverse(record.opened));
        }
        records.into_iter().map(|record| record.id.clone()).collect()
    }

    /// The ids of the active cases of a set, in its order.
    fn members(&self, set: &Record) -> Vec<String> {
        let live = set.members.iter().filter(|case| self.cases[**case].is_live());
        live.map(|case| self.cases[*case].id.clone()).collect()
    }
}

/// Appends the cases that are not members yet.
fn appended(mut members: Vec<usize>, cases: &[usize]) -> Vec<usize> {
    for case in cases {
        if !members.contains(case) {
            members.push(*case);
        }
    }
    members
}

/// Applies the actions to a new project and to a model, and compares the results.
async fn compare(user: &User, actions: &[Action]) {
    let unknown_id = "01890a5d-ac96-774b-bcce-b302099a8057".to_owned();
    let real = Real { user, project: user.project().await, unknown_id };
    let mut model = Model::default();
    for action in actions {
        let answer = real.apply(action, &model).await;
        let expected = model.apply(action);
        let outcome = match answer {
            Ok(Some(id)) if expected.is_none() => {
                let kind = if matches!(action, Action::CreateCase { .. }) {
                    Kind::Case
                } else {
                    Kind::Set
                };
                model.records(kind).last_mut().expect("the model has the new record").id = id;
                None
            }
            Ok(_) => None,
            answer => Some(fault(answer)),
        };
        assert_eq!(outcome.as_deref(), expected, "{action:?}");
    }
    real.assert_equals(&model).await;
}

#[test]
fn lists_equal_the_model_after_any_sequence_of_actions() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let world = runtime.block_on(World::start());
    let user = runtime.block_on(world.user());
    let config = Config { cases: SEQUENCES, failure_persistence: None, ..Config::default() };
    TestRunner::new(config)
        .run(&actions(), |actions| {
            runtime.block_on(compare(&user, &actions));
            Ok(())
        })
        .unwrap();
}
