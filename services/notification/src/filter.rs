//! Selects notifications by the same words in lists, streams and webhooks, in upper or lower case of the letters from
//! A to Z. Other letters differ, because Rust and PostgreSQL lower them by different rules. So SQL lowers texts with
//! the collation `C`.

use assay_events::{Actions, EventPattern, Sources, Word};
use assay_proto::{
    Choice, Fault, NotificationOrigin, ProjectId, TestResult, TestSetId, Trend, names_of,
    notification::NotificationFilter,
};
use assay_records::{Check, branch, in_any_case, nearest};
use sqlx::{Postgres, postgres::PgArguments, query::QueryAs};

/// The patterns of events that select a notification, in lower case, from the columns `source`, `action` and
/// `origin`.
pub(crate) const PATTERNS: &str = r#"(case origin when 'Client'
    then array['*', 'client.*', 'client.' || lower(source collate "C") || '.*',
               'client.*.' || lower(action collate "C"),
               'client.' || lower(source collate "C") || '.' || lower(action collate "C")]
    else array['*', lower(source collate "C") || '.*', '*.' || lower(action collate "C"),
               lower(source collate "C") || '.' || lower(action collate "C")] end)"#;

/// Number of parameters of [`Filter::conditions`].
const PARAMETERS: usize = 11;

/// Maximum length of an owner, in characters.
pub(crate) const LONGEST_OWNER: usize = 255;

/// Selects notifications that meet every field that is present.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    source: Option<String>,
    action: Option<String>,
    origin: Option<String>,
    /// Patterns in lower case.
    events: Option<Vec<String>>,
    project: Option<String>,
    /// A pattern of branches.
    branch: Option<String>,
    results: Option<Vec<String>>,
    test_set: Option<String>,
    /// Those of the execution, or of the tests of the owner if there is one.
    trends: Option<Vec<String>>,
    /// In lower case.
    owner: Option<String>,
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
            let known = names_of::<NotificationOrigin>();
            let found = in_any_case(&origin, known.iter().map(String::as_str));
            if found.is_none() {
                check.refuse("origin", format!("must be {}", known.join(" or ")));
            }
            found.map_or(origin, ToOwned::to_owned)
        });
        let events = given(filter.event).and_then(|events| read_events(&mut check, &events));
        let project = given(filter.project_id);
        let project = check.read(ProjectId::from_field_if_any("projectId", project.as_deref()))?;
        let results = given(filter.result);
        let results =
            results.map(|results| read_names::<TestResult>(&mut check, "result", &results));
        let test_set = given(filter.test_set_id);
        let test_set =
            check.read(TestSetId::from_field_if_any("testSetId", test_set.as_deref()))?;
        let trends = given(filter.trend);
        let trends = trends.map(|trends| read_names::<Trend>(&mut check, "trend", &trends));
        let branch = given(filter.branch);
        if let Some(branch) = &branch {
            branch::check(&mut check, "branch", branch, branch::LONGEST_BRANCH);
        }
        let owner = given(filter.owner);
        if let Some(owner) = &owner {
            check.line("owner", owner, 1..=LONGEST_OWNER);
        }
        check.done()?;
        let owner = owner.map(|owner| owner.to_ascii_lowercase());
        let project = project.flatten().map(|project| project.to_string());
        let test_set = test_set.flatten().map(|test_set| test_set.to_string());
        let hides_audit = !sees_audit;
        Ok(Self {
            source,
            action,
            origin,
            events,
            project,
            branch,
            results,
            test_set,
            trends,
            owner,
            hides_audit,
        })
    }

    pub(crate) fn is_none(&self) -> bool {
        let Self { source, action, origin, project, branch, test_set, owner, .. } = self;
        let texts = [source, action, origin, project, branch, test_set, owner];
        let lists = [&self.events, &self.results, &self.trends];
        texts.into_iter().all(Option::is_none)
            && lists.into_iter().all(Option::is_none)
            && !self.hides_audit
    }

    /// Returns whether it selects nearly all notifications: all but, perhaps, entries of the audit log.
    pub(crate) fn is_wide(&self) -> bool {
        Self { hides_audit: false, ..self.clone() }.is_none()
    }

    /// Returns the conditions on the columns of notifications. `first` is the number of the first parameter.
    pub(crate) fn conditions(first: usize) -> String {
        let parameter = |number: usize| format!("${}", first + number);
        let [
            source,
            action,
            origin,
            events,
            project,
            branch,
            results,
            test_set,
            trends,
            owner,
            hides_audit,
        ] = std::array::from_fn::<_, PARAMETERS, _>(parameter);
        let of_branch = branch::condition("(details->>'Branch')", &branch);
        format!(
            "({source}::text is null or lower(source collate \"C\") = lower({source}::text collate \"C\"))
             and ({action}::text is null or lower(action collate \"C\") = lower({action}::text collate \"C\"))
             and ({origin}::text is null or origin = {origin})
             and ({events}::text[] is null or {events} && {PATTERNS})
             and ({project}::text is null or details->>'ProjectId' = {project})
             and ({branch}::text is null or {of_branch})
             and ({results}::text[] is null or details->>'Result' = any({results}))
             and ({test_set}::text is null or details->>'TestSetId' = {test_set})
             and ({trends}::text[] is null or case when {owner}::text is null
                 then details->>'Trend' = any({trends})
                 else exists (
                     select from jsonb_to_recordset(details->'OwnerTrends') as one (\"Owner\" text, \"Trend\" text)
                     where lower(\"Owner\" collate \"C\") = {owner} and \"Trend\" = any({trends})
                 ) end)
             and ({owner}::text is null or lower((details->>'Owners') collate \"C\")::jsonb ? {owner})
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
            .bind(self.test_set.clone())
            .bind(self.trends.clone())
            .bind(self.owner.clone())
            .bind(self.hides_audit)
    }
}

/// Reads patterns of events that commas separate. Returns none if they select all.
fn read_events(check: &mut Check, events: &str) -> Option<Vec<String>> {
    let mut read = Vec::new();
    for event in events.split(',').map(str::trim) {
        match EventPattern::parse(event) {
            Ok(pattern) if pattern.is_any() => return None,
            Ok(pattern) => read.push(pattern.as_str().to_ascii_lowercase()),
            Err(problem) => check.refuse("event", problem),
        }
    }
    Some(read)
}

/// Reads names of the values of an enum that commas separate, in any case.
fn read_names<E: Choice>(check: &mut Check, field: &str, names: &str) -> Vec<String> {
    let all = names_of::<E>();
    let known = || all.iter().map(String::as_str);
    let mut read = Vec::new();
    for name in names.split(',').map(str::trim) {
        if let Some(known) = in_any_case(name, known()) {
            read.push(known.to_owned());
        } else {
            let nearest = nearest(name, known()).map_or("", |(known, _)| known);
            check.refuse(field, format!("no such {field}: {name:?}; the nearest is {nearest}"));
        }
    }
    read
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
            trend: Some("worse, BETTER".to_owned()),
            branch: Some(String::new()),
            owner: Some("Checkout Team".to_owned()),
            ..NotificationFilter::default()
        };
        let read = Filter::read(filter, true).unwrap();
        assert_eq!(read.source.as_deref(), Some("TestSet"));
        assert_eq!(read.action.as_deref(), Some("Completed"));
        assert_eq!(read.origin.as_deref(), Some("Assay"));
        assert_eq!(read.events.unwrap(), ["execution.judged", "client.build.*"]);
        assert_eq!(read.results.unwrap(), ["Failed", "Error"]);
        assert_eq!(read.trends.unwrap(), ["Worse", "Better"]);
        assert_eq!(read.branch, None);
        assert_eq!(read.owner.as_deref(), Some("checkout team"));
        assert!(Filter::read(NotificationFilter::default(), true).unwrap().is_none());
    }

    #[test]
    fn each_result_and_trend_of_the_contract_is_known() {
        for (results, trends) in [
            (names_of::<TestResult>().join(","), names_of::<Trend>().join(",")),
            ("NotExecuted,Passed,Failed,Error,Aborted,Canceled".into(), "Worse,Same,Better".into()),
        ] {
            let [result, trend] = [&results, &trends].map(|names| Some(names.to_lowercase()));
            let filter = NotificationFilter { result, trend, ..NotificationFilter::default() };
            let read = Filter::read(filter, true).unwrap();
            assert_eq!(read.results.unwrap().join(","), results);
            assert_eq!(read.trends.unwrap().join(","), trends);
        }
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
            test_set_id: Some("nightly".to_owned()),
            trend: Some("Worst".to_owned()),
            branch: Some("*".repeat(11)),
            owner: Some("Ada\n".to_owned()),
        };
        let problem = problem(filter);
        for expected in [
            "source: no such source: \"TestSte\"; the nearest is TestSet",
            "action: no such action: \"Complete\"; the nearest is Completed",
            "origin: must be",
            "event: no such action of TestSet: \"Complete\"; the nearest is Completed",
            "projectId: ",
            "result: no such result: \"Fail\"; the nearest is Failed",
            "testSetId: ",
            "trend: no such trend: \"Worst\"; the nearest is Worse",
            "branch: must have at most 10 *",
            "owner: must have 1 to 255 characters",
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
