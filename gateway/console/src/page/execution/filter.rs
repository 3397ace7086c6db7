//! The results of an execution that a page shows: the query of its URL.

use serde::{Deserialize, Serialize};

use crate::{
    page::{
        classification,
        paged::{Paged, unless_empty},
    },
    record::{Changes, ResultChange, Statistic},
};

/// The results to show. The parameters are those of the interface; `view=all` shows all results
/// although some are new.
#[derive(Clone, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Filter {
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    pub(super) view: Option<String>,
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    pub(super) change: Option<String>,
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<String>,
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<String>,
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    pub(super) fingerprint: Option<String>,
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    pub(super) q: Option<String>,
    /// Whether the tests are muted; by default, the parts of failures have only those that are not.
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    pub(super) muted: Option<String>,
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    pub(super) unreviewed: Option<String>,
    #[serde(flatten)]
    pub(super) place: classification::Place,
}

/// A part of the results.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Tab {
    New,
    CauseChanged,
    Still,
    Flaky,
    Fixed,
    Muted,
    All,
}

impl Tab {
    pub(super) const EACH: [Self; 7] = [
        Self::New,
        Self::CauseChanged,
        Self::Still,
        Self::Flaky,
        Self::Fixed,
        Self::Muted,
        Self::All,
    ];

    /// The parts that failures belong to, and flaky tests that passed on a retry.
    pub(super) const FAILING: [Self; 5] =
        [Self::New, Self::CauseChanged, Self::Still, Self::Muted, Self::Flaky];

    /// Returns the number of test cases of this part.
    pub(super) fn count(self, changes: &Changes, statistic: &Statistic) -> i64 {
        match self {
            Self::New => changes.new - changes.muted_new,
            Self::CauseChanged => changes.cause_changed - changes.muted_cause_changed,
            Self::Still => changes.still - changes.muted_still,
            Self::Flaky => changes.flaky - changes.muted_flaky,
            Self::Fixed => changes.fixed,
            Self::Muted => changes.muted,
            Self::All => statistic.total,
        }
    }

    /// Returns what follows the number of this part in a sentence.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::CauseChanged => "for another cause than before",
            Self::Still => "as before",
            Self::Flaky => "flaky",
            Self::Fixed => "fixed",
            Self::Muted => "muted",
            Self::All => "in total",
        }
    }

    /// Returns the change that the interface filters by.
    pub(super) fn change(self) -> Option<ResultChange> {
        match self {
            Self::New => Some(ResultChange::New),
            Self::CauseChanged => Some(ResultChange::CauseChanged),
            Self::Still => Some(ResultChange::Still),
            Self::Flaky => Some(ResultChange::Flaky),
            Self::Fixed => Some(ResultChange::Fixed),
            Self::Muted | Self::All => None,
        }
    }

    /// Returns whether this part has muted failures; nothing if it has them and others.
    fn muted(self) -> Option<bool> {
        match self {
            Self::Muted => Some(true),
            Self::Fixed | Self::All => None,
            _ => Some(false),
        }
    }

    /// Returns the filter that shows this part.
    pub(super) fn filter(self) -> Filter {
        let view = (self == Self::All).then(|| "all".to_owned());
        let muted = (self == Self::Muted).then(|| "true".to_owned());
        let change = self.change().map(|change| change.to_string());
        Filter { view, change, muted, ..Filter::default() }
    }
}

impl Filter {
    /// Returns the part that the URL asks for.
    pub(super) fn explicit_tab(&self) -> Option<Tab> {
        let is_of = |tab: &Tab| self.change.as_deref() == tab.change().map(ResultChange::name);
        let tab = Tab::EACH.into_iter().find(is_of).filter(|_| self.change.is_some());
        let is_filtered = self.view.is_some() || self.result.is_some() || self.status.is_some();
        let is_filtered = is_filtered || self.fingerprint.is_some() || self.q.is_some();
        let is_filtered = is_filtered || self.unreviewed.is_some() || !self.place.is_anywhere();
        let muted = (self.muted.as_deref() == Some("true")).then_some(Tab::Muted);
        tab.or(muted).or(is_filtered.then_some(Tab::All))
    }

    /// Returns the filter of the interface that selects the results of a part.
    pub(super) fn of_interface(&self, tab: Tab) -> Self {
        let muted = self.muted.clone().or_else(|| tab.muted().map(|muted| muted.to_string()));
        let change = tab.change().map(|change| change.to_string());
        Self { view: None, change, muted, ..self.clone() }
    }

    /// Returns whether fields of the form select some of the results.
    pub(super) fn is_narrow(&self) -> bool {
        let fields = [&self.q, &self.result, &self.status, &self.unreviewed];
        fields.iter().any(|field| field.is_some()) || !self.place.is_anywhere()
    }

    /// Returns the part to show: by default the first one that needs attention.
    pub(in crate::page) fn tab(&self, changes: &Changes) -> Tab {
        self.explicit_tab().unwrap_or(match changes {
            changes if changes.new > changes.muted_new => Tab::New,
            changes if changes.cause_changed > changes.muted_cause_changed => Tab::CauseChanged,
            changes if changes.still > changes.muted_still => Tab::Still,
            changes if changes.flaky > changes.muted_flaky => Tab::Flaky,
            _ => Tab::All,
        })
    }

    /// Returns whether the results are shown by causes, rather than as a plain list.
    pub(super) fn is_grouped(&self, tab: Tab) -> bool {
        let is_plain = self.result.is_some() || self.status.is_some() || self.fingerprint.is_some();
        // Causes have no place.
        let is_plain = is_plain || !self.place.is_anywhere();
        matches!(tab, Tab::New | Tab::CauseChanged | Tab::Still | Tab::Muted) && !is_plain
    }
}

impl Paged<Filter> {
    /// Returns the query of the URL, for links that lead back.
    pub(super) fn encode(&self, tab: Tab) -> String {
        let shown = self.filter.explicit_tab().is_none();
        let shown = shown.then(|| Self { filter: tab.filter(), cursor: self.cursor.clone() });
        serde_urlencoded::to_string(shown.as_ref().unwrap_or(self)).unwrap_or_default()
    }

    /// Reads the query of a URL.
    pub(in crate::page) fn parse(query: &str) -> Self {
        serde_urlencoded::from_str(query).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_part_that_needs_attention_is_shown() {
        let none = Changes::default();
        let still = Changes { still: 1, flaky: 1, ..Changes::default() };
        let new = Changes { new: 1, still: 1, ..Changes::default() };
        let muted = Changes { muted: 1, muted_new: 1, ..new };
        for (query, changes, expected) in [
            ("", &new, Tab::New),
            ("", &still, Tab::Still),
            ("", &none, Tab::All),
            ("view=all", &new, Tab::All),
            ("q=pay", &new, Tab::All),
            ("tag=smoke", &new, Tab::All),
            ("change=Fixed", &new, Tab::Fixed),
            ("change=&result=", &new, Tab::New),
            ("change=New&fingerprint=1", &none, Tab::New),
            ("", &muted, Tab::Still),
            ("muted=true", &new, Tab::Muted),
            ("unreviewed=true", &new, Tab::All),
        ] {
            assert_eq!(Paged::parse(query).filter.tab(changes), expected, "{query}");
        }
    }

    #[test]
    fn muted_failures_have_a_part_of_their_own() {
        let of_interface = |query: &str| {
            let filter = Paged::parse(query).filter;
            let tab = filter.explicit_tab().unwrap();
            crate::api::address("", &filter.of_interface(tab))
        };
        for (query, expected) in [
            ("change=New", "?change=New&muted=false"),
            ("change=New&fingerprint=1", "?change=New&fingerprint=1&muted=false"),
            ("change=Fixed", "?change=Fixed"),
            ("muted=true&q=a", "?q=a&muted=true"),
            ("view=all&result=Failed", "?result=Failed"),
            ("unreviewed=true", "?unreviewed=true"),
        ] {
            assert_eq!(of_interface(query), expected);
        }
    }

    #[test]
    fn links_lead_back_to_what_was_shown() {
        assert!(Paged::parse("change=New").filter.is_grouped(Tab::New));
        let in_suite = Paged::parse("change=New&suite=checkout").filter;
        assert!(!in_suite.is_grouped(Tab::New), "causes have no place");
        assert_eq!(Paged::<Filter>::default().encode(Tab::New), "change=New");
        assert_eq!(Paged::<Filter>::default().encode(Tab::All), "view=all");
        let query = "change=New&q=a+b&cursor=1";
        assert_eq!(Paged::parse(query).encode(Tab::New), query);
    }
}
