//! Runs whose results are on disk.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use crate::{
    folder::{Name, Part},
    source::{
        model::{NOT_BEGUN, Run},
        text::{name, stamp},
    },
};

/// A run with the files of its results and reviews.
pub(super) struct Stored {
    pub(super) run: Run,
    pub(super) results: Part,
    pub(super) reviews: Part,
    pub(super) files: Part,
    /// The names of its files.
    pub(super) names: HashSet<Name>,
    first: Option<DateTime<Utc>>,
    last: Option<DateTime<Utc>>,
}

impl Stored {
    pub(super) fn new(run: Run, [results, reviews, files]: [Part; 3]) -> Self {
        let names = HashSet::new();
        Self { run, results, reviews, files, names, first: None, last: None }
    }

    /// Takes the times of a result into account.
    pub(super) fn extend(&mut self, start: Option<DateTime<Utc>>, end: Option<DateTime<Utc>>) {
        self.first = earliest(self.first, start.or(end));
        self.last = self.last.max(end.or(start));
    }

    /// Returns the time of the run, which executions are ordered by.
    pub(super) fn begin(&self) -> Option<DateTime<Utc>> {
        earliest(self.run.start, self.first).or(self.run.end)
    }

    fn end(&self) -> Option<DateTime<Utc>> {
        self.run.end.max(self.last).max(self.begin())
    }

    /// Returns why the run is not imported. None if it is.
    pub(super) fn left_out(&self, now: DateTime<Utc>) -> Option<&'static str> {
        let has_begun = self.begin().is_some_and(|begin| begin <= now);
        let not_begun = (!has_begun && self.results.bytes() == 0).then_some(NOT_BEGUN);
        self.run.left_out.or(not_begun)
    }

    /// Returns whether the run has times in the future, which Assay refuses: such as planned ones, or local
    /// times that count as UTC.
    pub(super) fn is_in_future(&self, now: DateTime<Utc>) -> bool {
        self.end() > Some(now)
    }

    /// Returns the name of the test set.
    pub(super) fn set(&self) -> String {
        name(if self.run.set.trim().is_empty() { &self.run.key } else { &self.run.set })
    }

    /// Returns the execution as a record.
    pub(super) fn header(&self, id: &Name, now: DateTime<Utc>) -> Map<String, Value> {
        let Run { tags, build, url, .. } = &self.run;
        let time = |time: Option<DateTime<Utc>>| time.map(|time| stamp(time.min(now)));
        let set = self.set();
        let fields = [
            ("Id", Some(id.to_string())),
            ("Key", Some(id.to_string())),
            ("TestSetId", Some(set.clone())),
            ("TestSetName", Some(set)),
            ("Status", Some("Completed".to_owned())),
            ("Tags", Some(tags.clone())),
            ("Build", build.clone()),
            ("CiUrl", url.clone()),
            ("RequestTime", time(self.begin())),
            ("CompletionDateTime", time(self.end())),
        ];
        let given = fields.into_iter().filter_map(|(field, text)| Some((field, text?)));
        given.map(|(field, text)| (field.to_owned(), text.into())).collect()
    }
}

/// Returns the earlier of two times; that which is known.
fn earliest(one: Option<DateTime<Utc>>, other: Option<DateTime<Utc>>) -> Option<DateTime<Utc>> {
    one.into_iter().chain(other).min()
}
