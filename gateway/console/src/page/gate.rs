//! `/projects/{projectId}/sets/{testSetId}/gate`: the rules for the verdict of executions of a test set, and
//! what other rules would have decided.

use axum::{
    Form, Router,
    extract::{Path, Query},
    response::{IntoResponse, Redirect, Response},
    routing::get,
};
use futures::try_join;
use http::StatusCode;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{
    backtest::{self, number_of},
    paged::unless_empty,
    part::{below_set, check_field, facts, number_field},
    set as test_set,
    version::Version,
};
use crate::{
    api::Console,
    failure::Failure,
    layout::Page,
    record::{Backtest, BacktestDifference, Gate, Permission, Project, VerdictState},
    session::Session,
    text::{counted, number, plain, short_time},
};

pub(super) fn routes() -> Router<Console> {
    Router::new().route("/projects/{project}/sets/{set}/gate", get(page).post(save))
}

/// The rules in the form, as they were entered.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Entry {
    #[serde(deserialize_with = "unless_empty")]
    max_new_failures: Option<String>,
    #[serde(deserialize_with = "unless_empty")]
    allow_known_failures: Option<String>,
    #[serde(deserialize_with = "unless_empty")]
    max_flaky_tests: Option<String>,
    #[serde(deserialize_with = "unless_empty")]
    min_pass_rate: Option<String>,
    #[serde(deserialize_with = "unless_empty")]
    flaky_after_breaks: Option<String>,
    #[serde(deserialize_with = "unless_empty")]
    longest_flaky_break: Option<String>,
    #[serde(deserialize_with = "unless_empty")]
    flaky_within_runs: Option<String>,
    #[serde(flatten)]
    version: Version,
    /// Any text if the rules are to be tried.
    #[serde(deserialize_with = "unless_empty")]
    replay: Option<String>,
}

impl Entry {
    /// Returns what the form of a gate begins with.
    fn of(gate: &Gate) -> Self {
        Self { version: Version::of(&version(gate)), ..Self::rules(gate) }
    }

    /// Returns the rules of a gate.
    fn rules(gate: &Gate) -> Self {
        let text = |number: Option<i32>| number.map(|number| number.to_string());
        Self {
            max_new_failures: Some(gate.max_new_failures.to_string()),
            allow_known_failures: gate.allow_known_failures.then(|| "true".to_owned()),
            max_flaky_tests: text(gate.max_flaky_tests),
            min_pass_rate: gate.min_pass_rate.map(|rate| rate.to_string()),
            flaky_after_breaks: text(gate.flaky_after_breaks),
            longest_flaky_break: text(gate.longest_flaky_break),
            flaky_within_runs: text(gate.flaky_within_runs),
            ..Self::default()
        }
    }

    /// Returns the rules for the interface, which checks them. The form does not have the required test
    /// cases.
    fn gate(&self, required: &[String]) -> Value {
        let read = |text: &Option<String>| number_of(text.as_deref());
        json!({
            "MaxNewFailures": read(&self.max_new_failures),
            "AllowKnownFailures": self.allow_known_failures.is_some(),
            "MaxFlakyTests": read(&self.max_flaky_tests),
            "MinPassRate": read(&self.min_pass_rate),
            "FlakyAfterBreaks": read(&self.flaky_after_breaks),
            "LongestFlakyBreak": read(&self.longest_flaky_break),
            "FlakyWithinRuns": read(&self.flaky_within_runs),
            "RequiredTestCases": required,
        })
    }
}

/// Returns a version of the rules in the form: that of the test set changes with its test cases too, which
/// executions add.
fn version(gate: &Gate) -> String {
    let rules = Entry::rules(gate);
    let texts = [
        rules.max_new_failures,
        rules.allow_known_failures,
        rules.max_flaky_tests,
        rules.min_pass_rate,
        rules.flaky_after_breaks,
        rules.longest_flaky_break,
        rules.flaky_within_runs,
    ];
    texts.map(Option::unwrap_or_default).join(",")
}

/// Rules that were entered, to be tried unless they were refused.
struct Entered {
    entry: Entry,
    is_refused: bool,
    /// Why they were refused, unless their version says so.
    problem: Option<String>,
}

impl Entered {
    fn tried(entry: Entry) -> Self {
        Self { entry, is_refused: false, problem: None }
    }

    fn refused(entry: Entry, problem: Option<String>) -> Self {
        Self { entry, is_refused: true, problem }
    }
}

/// Shows the rules of a test set, or tries those of the form.
async fn page(
    session: Session,
    Path(ids): Path<(Uuid, Uuid)>,
    Query(entry): Query<Entry>,
) -> Result<Response, Failure> {
    let entered = entry.replay.is_some().then(|| Entered::tried(entry));
    show(&session, ids, entered).await
}

/// Saves the rules, unless somebody else has changed them since. The required test cases stay as they are. Rules that
/// are refused stay in the form.
async fn save(
    session: Session,
    Path((project, set)): Path<(Uuid, Uuid)>,
    Form(entry): Form<Entry>,
) -> Result<Response, Failure> {
    let (api, (_, path)) = (&session.api, paths(project, set));
    let record = test_set::record(api, &path).await?;
    if entry.version.is_stale(&version(&record.gate)) {
        return show(&session, (project, set), Some(Entered::refused(entry, None))).await;
    }
    let gate = entry.gate(&record.gate.required_test_cases);
    let change = json!({ "Gate": gate, "DataVersion": record.data_version });
    match api.change(&path, &change).await {
        Ok(()) => {
            let gate = format!("/projects/{project}/sets/{set}/gate");
            Ok(Redirect::to(&gate).into_response())
        }
        Err(failure) => {
            let problem = failure.of_conflict().or_else(Failure::of_input)?;
            show(&session, (project, set), Some(Entered::refused(entry, Some(problem)))).await
        }
    }
}

/// Shows rules that were entered, with the reason why they were refused or what they would have decided; or
/// those of the test set.
async fn show(
    Session { api, user }: &Session,
    (project, set): (Uuid, Uuid),
    entered: Option<Entered>,
) -> Result<Response, Failure> {
    let (project_path, path) = paths(project, set);
    let (of, record) =
        try_join!(api.get::<Project>(&project_path, &()), test_set::record(api, &path))?;
    let required = &record.gate.required_test_cases;
    let (mut entered, mut replayed) = (entered, None);
    if let Some(tried) = entered.as_mut().filter(|entered| !entered.is_refused) {
        let gate = json!({ "Gate": tried.entry.gate(required) });
        match backtest::replay(api, &format!("{path}/backtests"), &gate).await? {
            Ok(backtest) => replayed = Some(backtest),
            Err(reason) => (tried.is_refused, tried.problem) = (true, Some(reason)),
        }
    }
    let entered = entered.unwrap_or_else(|| Entered::tried(Entry::of(&record.gate)));
    let Entered { entry, is_refused, problem } = entered;
    let body = html! {
        div.head { h1 { "Gate of " bdi { (plain(&record.name)) } } }
        p.lead {
            "An execution passes if it meets these rules. Try other rules before you save them: it shows \
             which executions they would have blocked or let through."
        }
        @if let Some(problem) = &problem { p.alert role="alert" { (plain(problem)) } }
        (form((project, set), &entry, &record.gate, user.may(Permission::Write)))
        @if let Some(replayed) = &replayed { (answer(replayed)) }
    };
    let title = format!("Gate · {}", record.name);
    let trail = below_set(&of, &set.to_string(), &record.name);
    let status = if is_refused { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    Ok((status, Page { user, title, trail, body }).into_response())
}

/// Returns the paths of the project and of the test set in the interface.
fn paths(project: Uuid, set: Uuid) -> (String, String) {
    (format!("/api/projects/{project}"), format!("/api/projects/{project}/testsets/{set}"))
}

/// The form of rules, which may be others than those of the gate now.
fn form((project, set): (Uuid, Uuid), entry: &Entry, present: &Gate, may_save: bool) -> Markup {
    let required = present.required_test_cases.len();
    let fields = [
        ("maxNewFailures", "New failures, at most", (0, None), &entry.max_new_failures),
        ("maxFlakyTests", "Flaky tests, at most", (0, None), &entry.max_flaky_tests),
        ("minPassRate", "Passed, at least (%)", (0, Some(100)), &entry.min_pass_rate),
        ("flakyAfterBreaks", "Flaky from breaks", (2, Some(25)), &entry.flaky_after_breaks),
        ("longestFlakyBreak", "Longest break", (1, Some(10)), &entry.longest_flaky_break),
        ("flakyWithinRuns", "Within results", (5, Some(50)), &entry.flaky_within_runs),
    ];
    let page = format!("/projects/{project}/sets/{set}/gate");
    html! {
        form.filters action=(page) {
            (entry.version.fields(&version(present), "gate"))
            @for (name, label, bounds, value) in fields {
                (number_field(name, label, bounds, value.as_deref()))
            }
            (check_field("allowKnownFailures", "Known failures are allowed", entry.allow_known_failures.is_some()))
            (backtest::button(&page))
            @if may_save { button.quiet formmethod="post" { "Save" } }
        }
        @if required > 0 {
            p.hint { (counted(i64::try_from(required).unwrap_or(i64::MAX), "test case")) " required." }
        }
    }
}

/// The executions of which the rules change the verdict.
fn answer(replayed: &Backtest) -> Markup {
    let executions = counted(replayed.executions, "execution");
    let facts = [
        html! { b { (number(replayed.passed)) } " of " (executions) " pass" },
        html! { b { (number(replayed.blocked)) } " blocked that passed" },
        html! { b { (number(replayed.let_through)) } " let through that failed" },
    ];
    let is_part = replayed.next_cursor.is_some();
    let hint = is_part.then(|| {
        html! { "Only the latest executions were replayed: the time of a page is limited." }
    });
    let all = (replayed.blocked + replayed.let_through, "other verdict");
    backtest::answer(&facts, hint.as_ref(), all, replayed.differences.iter().map(row))
}

fn row(difference: &BacktestDifference) -> Markup {
    let is_blocked = difference.replayed != VerdictState::Passed;
    html! {
        li.row.past {
            span.mark {}
            span.what {
                a href=(format!("/executions/{}", difference.execution_id)) {
                    (short_time(difference.request_time))
                }
                span.facts {
                    (facts([difference.branch.as_deref(), difference.environment_name.as_deref()]))
                    @for rule in &difference.rules { span.fact { (plain(&rule.message)) } }
                }
            }
            span.marks {
                @if is_blocked { span.badge.fail { "Blocked" } } @else { span.badge.none { "Let through" } }
            }
        }
    }
}
