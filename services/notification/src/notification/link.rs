//! Links from a notification to its record: the page in the console, and the path in the interface.

use assay_proto::notification::Notification;
use assay_runtime::PublicUrl;
use url::Url;

/// Links to the pages of records.
#[derive(Clone, Debug)]
pub(crate) struct Links {
    /// Absent if the console is not served.
    console: Option<Url>,
}

impl Links {
    pub(crate) fn new(public: &PublicUrl, is_served: bool) -> Self {
        Self { console: is_served.then(|| public.public_url.clone()) }
    }

    /// Sets the links of a notification, from the ids in it. A deleted record has none.
    pub(crate) fn set(&self, notification: &mut Notification) {
        if notification.action == "Deleted" {
            return;
        }
        notification.path = path(notification);
        let page = self.console.clone().zip(page(notification));
        notification.url = page.map(|(mut url, page)| {
            url.set_path(&page);
            url.into()
        });
    }
}

/// Returns the path of the record in the interface.
fn path(notification: &Notification) -> Option<String> {
    let Notification { source, source_id: id, target, target_id, .. } = notification;
    let of_target = target_id.as_deref().unwrap_or_default();
    let in_project = |rest: String| {
        let project = notification.project_id.as_deref()?;
        Some(format!("/api/projects/{project}/{rest}"))
    };
    match (source.as_str(), target.as_str()) {
        ("Project", _) => Some(format!("/api/projects/{id}")),
        ("Customer", _) => Some(format!("/api/management/customers/{id}")),
        ("Webhook", _) => Some(format!("/api/webhooks/{id}")),
        ("TestSet" | "Execution" | "ShareLink", "Execution" | "TestSet") => {
            in_project(format!("executions/{}", notification.execution_id.as_deref()?))
        }
        ("TestCase", "TestReport") => {
            let plan = notification.test_plan_id.as_deref()?;
            in_project(format!("testcases/{id}/testplans/{plan}/testreports/{of_target}"))
        }
        ("TestCase", _) => in_project(format!("testcases/{id}")),
        ("TestCaseState", _) => in_project(format!("testcases/{id}/state")),
        ("TestPlan", _) => in_project(format!("testcases/{of_target}/testplans/{id}")),
        ("TestSet", _) => in_project(format!("testsets/{id}")),
        ("Subject", _) => in_project(format!("subjects/{id}")),
        ("Environment", _) => in_project(format!("environments/{id}")),
        ("KnownFailure", _) => in_project(format!("knownfailures/{id}")),
        ("Monitor", _) => in_project(format!("monitors/{id}")),
        ("Incident", _) => in_project(format!("incidents/{id}")),
        _ => None,
    }
}

/// Returns the page of the record in the console.
fn page(notification: &Notification) -> Option<String> {
    let Notification { source, source_id: id, target, target_id, .. } = notification;
    let of_target = target_id.as_deref().unwrap_or_default();
    let in_project = |rest: String| {
        let project = notification.project_id.as_deref()?;
        Some(format!("/projects/{project}{rest}"))
    };
    match (source.as_str(), target.as_str()) {
        ("Project", _) => Some(format!("/projects/{id}")),
        ("TestSet" | "Execution" | "ShareLink", "Execution" | "TestSet") => {
            Some(format!("/executions/{}", notification.execution_id.as_deref()?))
        }
        ("TestCase", "TestReport") => Some(format!("/reports/{of_target}")),
        ("TestCase" | "TestCaseState", _) => Some(format!("/cases/{id}")),
        ("TestPlan", _) | ("Monitor", "TestCase") => Some(format!("/cases/{of_target}")),
        ("TestSet", _) => in_project(format!("/sets/{id}")),
        ("KnownFailure", _) => in_project("/knownfailures".to_owned()),
        ("CauseRule", _) => in_project("/causes".to_owned()),
        ("Incident", _) => in_project(format!("/incidents/{id}")),
        _ => None,
    }
}
