//! TestRail's API v2 as its clients use it, so that they report to Assay unchanged. It is not part of
//! the documented interface.

mod access;
mod call;
mod cases;
mod constants;
mod login;
mod number;
mod page;
mod results;
mod run_name;
mod run_tests;
mod runs;
mod view;

use assay_auth::Caller;
use axum::{
    Json, Router,
    extract::{FromRef, Request, State},
    response::{IntoResponse, Response},
    routing::any,
};
use http::Method;
use serde_json::{Value, json};

use self::call::Call;
pub(crate) use self::login::signed_in;
use crate::{
    problem::{Problem, testrail::PATH},
    services::Services,
};

/// Returns the routes: one, since the query of a request is its path.
pub(crate) fn routes() -> Router<Services> {
    Router::new().route(PATH, any(answer))
}

/// The caller of requests, and the services that answer them.
struct Session {
    services: Services,
    caller: Caller,
}

impl Session {
    /// Returns the client of a service.
    fn client<C: FromRef<Services>>(&self) -> C {
        C::from_ref(&self.services)
    }
}

async fn answer(
    State(services): State<Services>,
    caller: Result<Caller, Problem>,
    request: Request,
) -> Result<Response, Problem> {
    if let Some(run) = view::run(request.uri()) {
        return view::show(services, caller, request.uri(), run).await;
    }
    let (session, call) = (Session { services, caller: caller? }, Call::of(request.uri())?);
    access::check(&call, session.caller.permissions)?;
    let answer = match *request.method() {
        Method::GET => get(&session, &call).await,
        Method::POST => post(&session, &call, request).await,
        _ => Err(call.unknown()),
    };
    answer.map(|answer| Json(answer).into_response())
}

async fn get(session: &Session, call: &Call) -> Result<Value, Problem> {
    match (call.method(), call.ids()?.as_slice()) {
        ("get_projects", []) => session.projects(call).await,
        ("get_project", &[project]) => session.project_of(project).await,
        ("get_suites", &[project]) => session.suites(project).await,
        ("get_suite", &[suite]) => session.suite(suite).await,
        ("get_case_fields", []) => Ok(cases::fields()),
        ("get_cases", &[project]) => session.cases(call, project).await,
        ("get_case", &[case]) => session.case(case).await,
        ("get_sections", &[project]) => session.sections(call, project).await,
        ("get_runs", &[project]) => session.runs(call, project).await,
        ("get_run", &[run]) => session.run(run).await,
        ("get_tests", &[run]) => session.tests(call, run).await,
        ("get_statuses", [] | [_]) => Ok(run_tests::statuses()),
        ("get_priorities", []) => Ok(constants::priorities()),
        ("get_case_types", []) => Ok(constants::case_types()),
        ("get_result_fields", []) => Ok(json!([])),
        ("get_templates", &[project]) => {
            session.project(project).await.map(|_| constants::templates())
        }
        ("get_plans", &[project]) => {
            session.project(project).await?;
            Ok(page::of(call, "plans", &[], None))
        }
        ("get_milestones", &[project]) => {
            session.project(project).await?;
            Ok(page::of(call, "milestones", &[], None))
        }
        ("get_configs", &[project]) => session.project(project).await.map(|_| json!([])),
        _ => Err(call.unknown()),
    }
}

async fn post(session: &Session, call: &Call, request: Request) -> Result<Value, Problem> {
    match (call.method(), call.ids()?.as_slice()) {
        ("add_section", &[project]) => session.add_section(project, request).await,
        ("add_case", &[section]) => session.add_case(section, request).await,
        ("update_case", &[case]) => session.update_case(case, request).await,
        ("add_run", &[project]) => session.add_run(project, request).await,
        ("update_run", &[run]) => session.update_run(run, request).await,
        ("close_run", &[run]) => session.close_run(run).await,
        ("add_results_for_cases" | "add_results", &[run]) => {
            session.add_results(run, request).await
        }
        ("add_result_for_case", &[run, case]) => session.add_result(run, case, request).await,
        ("add_result", &[test]) => {
            let (run, case) = number::of_test(test);
            session.add_result(run, case, request).await
        }
        ("add_attachment_to_result", &[result]) => session.add_attachment(result, request).await,
        _ => Err(call.unknown()),
    }
}
