//! `/shared/{token}/reports/{testReportId}`: the result of one test of a shared execution.

use axum::{
    extract::{Path, Query},
    response::Response,
};
use maud::{Markup, html};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::Visitor;
use crate::{
    api::{Api, address},
    chart::glyph,
    failure::Failure,
    layout,
    page::{
        execution::{Filter, Place},
        paged::{Paged, shown_of, unless_empty},
        part::{OF_TEST, result_badge},
        report::{content::ContentQuery, steps::steps},
        row::identifier,
    },
    record::{Attempt, SharedInstance},
    text::{clean, link, number, plain, taken},
};

/// Maximum number of instances that can be chosen on the page.
const INSTANCES: i64 = 100;

/// The part of the result to show, and the list that has led here.
#[derive(Clone, Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct View {
    /// Number of an instance; by default the first one that failed, or else was retried.
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    instance: Option<String>,
    /// Number of an attempt; by default the first one that failed, if the last one passed.
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    attempt: Option<String>,
    /// Number of the first step of the page; by default one shortly before the first that failed.
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    step: Option<String>,
    /// Query of the list of results.
    #[serde(deserialize_with = "unless_empty", skip_serializing_if = "Option::is_none")]
    from: Option<String>,
}

async fn read(
    api: &Api,
    place: &Place,
    id: Uuid,
    instance: Option<&str>,
) -> Result<SharedInstance, Failure> {
    let query = instance.map(|number| ("instance", number));
    api.get(&format!("{}/reports/{id}", place.api), &query.as_slice()).await
}

pub(super) async fn page(
    Visitor(api): Visitor,
    Path((token, id)): Path<(String, Uuid)>,
    Query(view): Query<View>,
) -> Result<Response, Failure> {
    let place = Place::shared(&token);
    let instance = read(&api, &place, id, view.instance.as_deref()).await?;
    let here = format!("{}/reports/{id}", place.page);
    let attempt = instance.attempt(view.attempt.as_deref());
    let number = instance.instance_nr.to_string();
    let body = html! {
        (head(&place, id, &instance, &view))
        (choices(&here, &instance, attempt, &view))
        (files(&instance))
        @let all = address(&here, &View { step: None, ..view.clone() });
        (steps(&here, &number, attempt, &all, view.step.as_deref()))
    };
    let report = &instance.report;
    let title = format!("{} · {}", report.result.label(), clean(&report.test_case_name));
    Ok(layout::open(&title, &body))
}

/// Shows a whole text of a step.
pub(super) async fn content(
    Visitor(api): Visitor,
    Path((token, id)): Path<(String, Uuid)>,
    Query(query): Query<ContentQuery>,
) -> Result<Response, Failure> {
    let instance = read(&api, &Place::shared(&token), id, Some(&query.instance)).await?;
    query.of(instance.attempt(Some(&query.attempt)))
}

fn head(place: &Place, id: Uuid, instance: &SharedInstance, view: &View) -> Markup {
    let report = &instance.report;
    let list = Paged::<Filter>::parse(view.from.as_deref().unwrap_or_default());
    let list = format!("{}#r-{id}", address(&place.page, &list));
    html! {
        div.head {
            h1 { bdi { (plain(&report.test_case_name)) } }
            (result_badge(report.result, report.result.label()))
            @if report.is_flaky { span.badge.flaky { "flaky" } }
            @if report.is_muted { span.badge.none { "muted" } }
            nav.walk aria-label="Tests of the list" { a.button rel="up" href=(list) { "List" } }
        }
        (identifier(&report.test_case_identifier, &report.test_case_name))
        p.facts {
            span.fact title=(OF_TEST) { (taken(report.result, report.duration_in_sec)) }
            @if !instance.variant.is_empty() { span.fact { bdi { (plain(&instance.variant)) } } }
        }
    }
}

/// Links to the instances, and to the attempts of the one that is shown.
fn choices(here: &str, instance: &SharedInstance, shown: &Attempt, view: &View) -> Markup {
    let current = instance.instance_nr;
    let to = |instance: i64, attempt: Option<i64>| {
        let instance = Some(instance.to_string());
        let attempt = attempt.map(|number| number.to_string());
        address(here, &View { instance, attempt, step: None, from: view.from.clone() })
    };
    html! {
        @if instance.instance_count > 1 {
            nav.tabs.small-tabs aria-label="Instances" {
                @for number in 1..=instance.instance_count.min(INSTANCES) {
                    a href=(to(number, None)) aria-current=[(number == current).then_some("page")] {
                        "Instance " (self::number(number))
                    }
                }
            }
            (shown_of(INSTANCES, instance.instance_count, "instance"))
        }
        @if !instance.attempts.is_empty() {
            nav.tabs.small-tabs aria-label="Attempts" {
                @for attempt in instance.attempts.iter().chain([&instance.last]) {
                    a href=(to(current, Some(attempt.number)))
                        aria-current=[(attempt.number == shown.number).then_some("page")]
                    {
                        (glyph(attempt.result)) " Attempt " (attempt.number) " "
                        span.dim { (taken(attempt.result, attempt.duration_in_sec)) }
                    }
                }
            }
        }
    }
}

/// Links to the stored files of the last attempt.
fn files(instance: &SharedInstance) -> Markup {
    let files: Vec<_> = instance.files.iter().filter_map(|file| link(file)).collect();
    html! {
        @if !files.is_empty() {
            p.facts.files { @for file in &files {
                span.fact { a href=(file.href()) { bdi { (plain(file.file_name())) } } }
            } }
        }
    }
}

impl SharedInstance {
    /// Returns the attempt to show.
    fn attempt(&self, number: Option<&str>) -> &Attempt {
        Attempt::chosen(&self.attempts, &self.last, number)
    }
}
