//! The names of events in filters, the same for lists, streams, webhooks and subscribers: `Source.Action` for
//! those of Assay, `Client.Source.Action` for those that clients create. Upper and lower case do not matter.

use std::{collections::BTreeSet, sync::LazyLock};

use assay_records::{in_any_case, misspelt, nearest};

use crate::{EventType, ExecutionAction, RecordKind, ReportsAction};

/// Selects all, or every source or action.
const ANY: &str = "*";

/// Prefix of the events that clients create.
const OF_CLIENTS: &str = "Client.";

/// Maximum number of characters of a source or action of a client.
const LONGEST: usize = 128;

/// Source and action of each notification that Assay creates.
static NAMES: LazyLock<BTreeSet<(&'static str, &'static str)>> = LazyLock::new(|| {
    let webhook = ["Created", "Changed", "Archived", "Unarchived", "Deleted", "Disabled"];
    let webhook = webhook.into_iter().map(|action| ("Webhook", action));
    EventType::all().flat_map(EventType::names).chain(webhook).collect()
});

/// The actions of the audit log that have no event of a record. `SecretsSeen` is left out: engines read secrets
/// for each of their tests.
const AUDITED: [&str; 11] = [
    "ApiTokenCreated",
    "ApiTokenDeleted",
    "EmailChangeRequested",
    "EmailChanged",
    "InvitationAccepted",
    "LoggedIn",
    "LoggedOut",
    "PasswordReset",
    "PasswordResetPrepared",
    "TokenRefined",
    "UserSettingsChanged",
];

/// Whether an action of the audit log is published as [`EventType::Audited`].
pub fn is_audited(action: &str) -> bool {
    AUDITED.contains(&action)
}

impl EventType {
    /// Returns the sources and actions of the notifications that follow from the event. An event that is only
    /// for services has none.
    pub fn names(self) -> Vec<(&'static str, &'static str)> {
        match self {
            Self::Record(kind, _)
            | Self::Records(kind, _)
            | Self::Expired(kind)
            | Self::Expiring(kind) => vec![(kind.name(), self.action())],
            Self::Alarm(_) => vec![(RecordKind::Monitor.name(), self.action())],
            Self::IncidentEnded => vec![(RecordKind::Incident.name(), self.action())],
            Self::Execution(ExecutionAction::Requested) => vec![("TestSet", "Requested")],
            Self::Execution(ExecutionAction::Completed | ExecutionAction::Canceled) => {
                vec![("TestSet", self.action()), ("Execution", "Judged")]
            }
            Self::Execution(ExecutionAction::Progressed) => vec![("Execution", "Failing")],
            Self::Execution(ExecutionAction::Waiting) => vec![("Execution", "Waiting")],
            Self::Reports(ReportsAction::Finished | ReportsAction::Reviewed) => {
                vec![("TestCase", self.action())]
            }
            Self::Audited => AUDITED.map(|action| ("AuditEntry", action)).to_vec(),
            Self::Execution(ExecutionAction::Rebuilt)
            | Self::Reports(ReportsAction::Rebuilt)
            | Self::SecretsSeen
            | Self::RetentionSet
            | Self::AppliancesSet => Vec::new(),
        }
    }
}

/// A word of a filter, as far as Assay knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// It is documented, and spelt so.
    Known(&'static str),
    /// It is probably meant to be this documented word.
    Misspelt(&'static str),
    /// Only clients may use it.
    Other,
}

/// Returns source and action of each notification that Assay creates.
pub fn event_names() -> impl Iterator<Item = (&'static str, &'static str)> {
    NAMES.iter().copied()
}

/// The sources of the events that Assay creates, such as `TestSet`.
pub struct Sources;

impl Sources {
    fn all() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|(source, _)| *source)
    }

    pub fn find(text: &str) -> Word {
        word(text, Self::all)
    }

    /// Returns what is wrong with a text that is not one of the sources.
    pub fn problem(text: &str) -> String {
        problem("source", text, Self::all())
    }
}

/// The actions of the events that Assay creates, such as `Completed`: those on a source, if there is one.
pub struct Actions {
    source: Option<&'static str>,
}

impl Actions {
    pub fn of(source: Option<&str>) -> Self {
        Self { source: source.and_then(|text| in_any_case(text, Sources::all())) }
    }

    fn all(&self) -> impl Iterator<Item = &'static str> {
        let source = self.source;
        let of_source =
            NAMES.iter().filter(move |(one, _)| source.is_none_or(|source| source == *one));
        of_source.map(|(_, action)| *action)
    }

    pub fn find(&self, text: &str) -> Word {
        word(text, || self.all())
    }

    /// Returns what is wrong with a text that is not one of the actions.
    pub fn problem(&self, text: &str) -> String {
        match self.source {
            Some(source) => problem(&format!("action of {source}"), text, self.all()),
            None => problem("action", text, self.all()),
        }
    }
}

fn word<I: Iterator<Item = &'static str>>(text: &str, known: impl Fn() -> I) -> Word {
    match in_any_case(text, known()) {
        Some(word) => Word::Known(word),
        None => misspelt(text, known()).map_or(Word::Other, Word::Misspelt),
    }
}

fn problem(noun: &str, text: &str, known: impl Iterator<Item = &'static str>) -> String {
    let text: String = text.chars().take(LONGEST).collect();
    match nearest(&text, known) {
        Some((word, _)) => format!("no such {noun}: {text:?}; the nearest is {word}"),
        None => format!("no such {noun}: {text:?}"),
    }
}

/// Selects events by their names, such as `TestSet.Completed`, `TestSet.*`, `*.Deleted`, `Client.Build.*` or
/// `*`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventPattern(String);

impl EventPattern {
    /// Parses a pattern. Fails with the problem.
    pub fn parse(text: &str) -> Result<Self, String> {
        const FORM: &str = "must be *, or Source.Action such as TestSet.Completed, TestSet.* or *.Deleted; \
                            Client.Source.Action for events that clients create";
        if text == ANY || text == "*.*" {
            return Ok(Self(ANY.to_owned()));
        }
        let prefix = text.get(..OF_CLIENTS.len());
        if prefix.is_some_and(|prefix| prefix.eq_ignore_ascii_case(OF_CLIENTS)) {
            let of_client = client_part(&text[OF_CLIENTS.len()..]).ok_or(FORM)?;
            return Ok(Self(format!("{OF_CLIENTS}{of_client}")));
        }
        let (source, action) = text.split_once('.').ok_or(FORM)?;
        let known = |word: Word| match word {
            Word::Known(word) => Some(word),
            Word::Misspelt(_) | Word::Other => None,
        };
        let source = match source {
            ANY => ANY,
            _ => known(Sources::find(source))
                .ok_or_else(|| of_clients(&Sources::problem(source), text))?,
        };
        let actions = Actions::of(Some(source).filter(|source| *source != ANY));
        let action = match action {
            ANY => ANY,
            _ => known(actions.find(action))
                .ok_or_else(|| of_clients(&actions.problem(action), text))?,
        };
        Ok(Self(format!("{source}.{action}")))
    }

    /// Returns the pattern that selects all events.
    pub fn any() -> Self {
        Self(ANY.to_owned())
    }

    /// Whether it selects all events.
    pub fn is_any(&self) -> bool {
        self.0 == ANY
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn of_clients(problem: &str, text: &str) -> String {
    let text: String = text.chars().take(LONGEST).collect();
    format!("{problem}; {OF_CLIENTS}{text} selects events that clients create")
}

/// Returns source and action of a pattern of clients: any names, or `*`.
fn client_part(text: &str) -> Option<String> {
    if text == ANY || text == "*.*" {
        return Some(ANY.to_owned());
    }
    let is_name = |text: &str| {
        let count = text.chars().take(LONGEST + 1).count();
        (1..=LONGEST).contains(&count)
            && !text.contains(|char: char| char.is_control() || char == '*')
    };
    let is_part = |text: &str| text == ANY || is_name(text);
    let splits_at = |(dot, _)| is_part(&text[..dot]) && is_part(&text[dot + 1..]);
    text.match_indices('.').any(splits_at).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = include_str!("../../../../docs/subscribers.md");

    /// Returns the words in backticks of a cell, without those in explanations: in parentheses, or behind a colon.
    fn words(cell: &str) -> Vec<&str> {
        let cell = cell.split(':').next().unwrap_or_default();
        let cell = cell.split('(').map(|part| part.rsplit(')').next().unwrap_or_default());
        cell.flat_map(|part| part.split('`').skip(1).step_by(2)).collect()
    }

    #[test]
    fn the_table_of_events_has_the_events_that_assay_publishes() {
        let heading = "| Source | Target | Action |\n|---|---|---|\n";
        let (_, table) = DOCUMENT.split_once(heading).unwrap();
        let (mut documented, mut before) = (BTreeSet::new(), Vec::new());
        for row in table.lines().take_while(|row| row.starts_with('|')) {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            let [_, sources, _, actions, _] = cells[..] else { panic!("{row}") };
            if actions != "the same" {
                before = words(actions);
            }
            assert!(!before.is_empty() && !words(sources).is_empty(), "{row}");
            for source in words(sources) {
                for action in &before {
                    assert!(
                        documented.insert((source, *action)),
                        "{source}.{action} is there twice"
                    );
                }
            }
        }
        let published: BTreeSet<_> = event_names().collect();
        let missing: Vec<_> = published.difference(&documented).collect();
        let unknown: Vec<_> = documented.difference(&published).collect();
        assert!(
            missing.is_empty() && unknown.is_empty(),
            "docs/subscribers.md lacks {missing:?}, and has {unknown:?}, which nothing publishes"
        );
    }

    #[test]
    fn a_pattern_selects_documented_events_in_any_case() {
        for (text, expected) in [
            ("*", "*"),
            ("*.*", "*"),
            ("testset.completed", "TestSet.Completed"),
            ("TESTSET.*", "TestSet.*"),
            ("*.deleted", "*.Deleted"),
            ("client.*", "Client.*"),
            ("Client.*.*", "Client.*"),
            ("client.Build.Begun", "Client.Build.Begun"),
            ("Client.TestSet.Completed", "Client.TestSet.Completed"),
            ("Client.a.b.c", "Client.a.b.c"),
        ] {
            assert_eq!(EventPattern::parse(text).map(|one| one.0).as_deref(), Ok(expected));
        }
    }

    #[test]
    fn another_name_is_refused_with_the_nearest_one() {
        for (text, nearest) in [
            ("TestSet.Complete", "Completed"),
            ("TestSte.Completed", "TestSet"),
            ("*.Finish", "Finished"),
            ("TestCase.Completed", "action of TestCase"),
            ("Nope.Nope", "Client.Nope.Nope"),
        ] {
            let problem = EventPattern::parse(text).unwrap_err();
            assert!(problem.contains(nearest), "{problem}");
        }
        for wrong in
            ["", ".", "TestSet", "**", "Te*.*", "Client", "Client.", "Client.a", "Client.a\n.b"]
        {
            assert!(EventPattern::parse(wrong).is_err(), "{wrong:?} was accepted");
        }
    }

    #[test]
    fn every_name_selects_itself() {
        for (source, action) in NAMES.iter() {
            let name = format!("{source}.{action}");
            let parsed = EventPattern::parse(&name.to_uppercase());
            assert_eq!(parsed.map(|one| one.0), Ok(name));
        }
    }
}
