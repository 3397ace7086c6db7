//! Selects notifications by the same words in lists, streams and webhooks.

use assay_events::{Actions, EventPattern, Sources, Word};
use assay_proto::{Fault, ProjectId, notification::NotificationFilter};
use assay_records::{Check, in_any_case, nearest};
use sqlx::{Postgres, postgres::PgArguments, query::QueryAs};

/// The names of results.
const RESULTS: [&str; 6] = ["NotExecuted", "Passed", "Failed", "Error", "Aborted", "Canceled"];

/// The patterns of events that select a notification, in lower case, from the columns `source`, `action` and
/// `origin`.
pub(crate) const PATTERNS: &str = "(case origin when 'Client'
    then array['*', 'client.*', 'client.' || lower(source) || '.*', 'client.*.' || lower(action),
               'client.' || lower(source) || '.' || lower(action)]
    else array['*', lower(source) || '.*', '*.' || lower(action),
               lower(source) || '.' || lower(action)] end)";

/// Number of parameters of [`Filter::conditions`].
const PARAMETERS: usize = 8;

/// Selects notifications that meet every field that is present.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    source: Option<String>,
    action: Option<String>,
    origin: Option<String>,
    /// Patterns in lower case.
    events: Option<Vec<String>>,
    project: Option<String>,
    branch: Option<String>,
    results: Option<Vec<String>>,
    /// Whether entries of the audit log are hidden.
    hides_audit: bool,
}

impl Filter {
    /// Reads the filter of a caller, who sees entries of the audit log if `sees_audit`.
    pub(crate) fn read(filter: NotificationFilter, sees_audit: bool) -> Result<Self, Fault> {
        let given = |text: Option<String>| text.filter(|text| !text.is_empty());
        let mut check = Check::default();
        // Clients choose their own words.
        let of_clients =
            filter.origin.as_deref().is_some_and(|it| it.eq_ignore_ascii_case("client"));
        let source = given(filter.source).map(|source| match Sources::find(&source) {
            Word::Known(known) => known.to_owned(),
            Word::Misspelt(_) if of_clients => source,
            Word::Other => source,
            Word::Misspelt(_) => {
                check.refuse("source", Sources::problem(&source));
                source
            }
        });
        let actions = Actions::of(source.as_deref());
        let action = given(filter.action).map(|action| match actions.find(&action) {
            Word::Known(known) => known.to_owned(),
            Word::Misspelt(_) if of_clients => action,
            Word::Other => action,
            Word::Misspelt(_) => {
                check.refuse("action", actions.problem(&action));
                action
            }
        });
        let origin = given(filter.origin).map(|origin| {
            let known = in_any_case(&origin, ["Assay", "Client"].into_iter());
            if known.is_none() {
                check.refuse("origin", "must be Assay or Client");
            }
            known.map_or(origin, ToOwned::to_owned)
        });
        let events = given(filter.event).and_then(|events| read_events(&mut check, &events));
        let project = given(filter.project_id);
        let project = check.read(ProjectId::from_field_if_any("projectId", project.as_deref()))?;
        let results = given(filter.result).map(|results| read_results(&mut check, &results));
        check.done()?;
        let project = project.flatten().map(|project| project.to_string());
        let branch = given(filter.branch);
        let hides_audit = !sees_audit;
        Ok(Self { source, action, origin, events, project, branch, results, hides_audit })
    }

    pub(crate) fn is_none(&self) -> bool {
        let Self { source, action, origin, events, project, branch, results, hides_audit } = self;
        let texts = [source, action, origin, project, branch];
        texts.into_iter().all(Option::is_none)
            && events.is_none()
            && results.is_none()
            && !hides_audit
    }

    /// Returns whether it selects nearly all notifications: all but, perhaps, entries of the audit log.
    pub(crate) fn is_wide(&self) -> bool {
        Self { hides_audit: false, ..self.clone() }.is_none()
    }

    /// Returns the conditions on the columns of notifications. `first` is the number of the first parameter.
    pub(crate) fn conditions(first: usize) -> String {
        let parameter = |number: usize| format!("${}", first + number);
        let [source, action, origin, events, project, branch, results, hides_audit] =
            std::array::from_fn::<_, PARAMETERS, _>(parameter);
        format!(
            "({source}::text is null or lower(source) = lower({source}))
             and ({action}::text is null or lower(action) = lower({action}))
             and ({origin}::text is null or origin = {origin})
             and ({events}::text[] is null or {events} && {PATTERNS})
             and ({project}::text is null or details->>'ProjectId' = {project})
             and ({branch}::text is null or details->>'Branch' = {branch})
             and ({results}::text[] is null or details->>'Result' = any({results}))
             and not ({hides_audit} and source = 'AuditEntry' and origin = 'Assay')"
        )
    }

    /// Binds the parameters of [`Filter::conditions`].
    pub(crate) fn bind<'q, O>(
        &self,
        query: QueryAs<'q, Postgres, O, PgArguments>,
    ) -> QueryAs<'q, Postgres, O, PgArguments> {
        query
            .bind(self.source.clone())
            .bind(self.action.clone())
            .bind(self.origin.clone())
            .bind(self.events.clone())
            .bind(self.project.clone())
            .bind(self.branch.clone())
            .bind(self.results.clone())
            .bind(self.hides_audit)
    }
}

/// Reads patterns of events that commas separate. Returns none if they select all.
fn read_events(check: &mut Check, events: &str) -> Option<Vec<String>> {
    let mut read = Vec::new();
    for event in events.split(',').map(str::trim) {
        match EventPattern::parse(event) {
            Ok(pattern) if pattern.is_any() => return None,
            Ok(pattern) => read.push(pattern.as_str().to_lowercase()),
            Err(problem) => check.refuse("event", problem),
        }
    }
    Some(read)
}

fn read_results(check: &mut Check, results: &str) -> Vec<String> {
    let results = results.split(',').map(str::trim);
    let read = results.filter_map(|result| {
        let known = in_any_case(result, RESULTS.into_iter());
        if known.is_none() {
            let nearest = nearest(result, RESULTS.into_iter()).map_or("", |(known, _)| known);
            check.refuse("result", format!("no such result: {result:?}; the nearest is {nearest}"));
        }
        known.map(ToOwned::to_owned)
    });
    read.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(filter: NotificationFilter) -> String {
        let Err(Fault::Invalid(violations)) = Filter::read(filter, true) else {
            panic!("it was accepted")
        };
        let violations = violations.into_iter();
        violations.map(|one| [one.field, ": ".into(), one.problem, "\n".into()].concat()).collect()
    }

    #[test]
    fn documented_words_are_read_in_any_case() {
        let filter = NotificationFilter {
            source: Some("testset".to_owned()),
            action: Some("COMPLETED".to_owned()),
            origin: Some("assay".to_owned()),
            event: Some("execution.judged, client.Build.*".to_owned()),
            result: Some("failed,error".to_owned()),
            branch: Some(String::new()),
            ..NotificationFilter::default()
        };
        let read = Filter::read(filter, true).unwrap();
        assert_eq!(read.source.as_deref(), Some("TestSet"));
        assert_eq!(read.action.as_deref(), Some("Completed"));
        assert_eq!(read.origin.as_deref(), Some("Assay"));
        assert_eq!(read.events.unwrap(), ["execution.judged", "client.build.*"]);
        assert_eq!(read.results.unwrap(), ["Failed", "Error"]);
        assert_eq!(read.branch, None);
        assert!(Filter::read(NotificationFilter::default(), true).unwrap().is_none());
    }

    #[test]
    fn a_misspelt_word_is_refused_with_the_nearest_one() {
        let filter = NotificationFilter {
            source: Some("TestSte".to_owned()),
            action: Some("Complete".to_owned()),
            origin: Some("Me".to_owned()),
            event: Some("TestSet.Complete".to_owned()),
            project_id: Some("shop".to_owned()),
            result: Some("Fail".to_owned()),
            ..NotificationFilter::default()
        };
        let problem = problem(filter);
        for expected in [
            "source: no such source: \"TestSte\"; the nearest is TestSet",
            "action: no such action: \"Complete\"; the nearest is Completed",
            "origin: must be",
            "event: no such action of TestSet: \"Complete\"; the nearest is Completed",
            "projectId: ",
            "result: no such result: \"Fail\"; the nearest is Failed",
        ] {
            assert!(problem.contains(expected), "{problem}");
        }
    }

    #[test]
    fn a_source_that_only_clients_use_is_taken_as_it_is() {
        let filter = NotificationFilter {
            source: Some("Deployment".to_owned()),
            action: Some("Begun".to_owned()),
            ..NotificationFilter::default()
        };
        assert_eq!(Filter::read(filter, true).unwrap().source.as_deref(), Some("Deployment"));
        let filter = NotificationFilter {
            source: Some("Users".to_owned()),
            action: Some("Complete".to_owned()),
            origin: Some("Client".to_owned()),
            ..NotificationFilter::default()
        };
        assert_eq!(Filter::read(filter, true).unwrap().source.as_deref(), Some("Users"));
    }
}
