//! Headers and failures of pages.

use assay_testkit::{Answer, eventually};
use reqwest::Method;
use serde_json::{Value, json};

use super::{Reader, filled, junit};
use crate::{
    customer::Customer,
    installation::Installation,
    junit::{report, upload},
    world::{World, create_project, id},
};

const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; \
                      media-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; \
                      frame-ancestors 'none'";

#[tokio::test]
async fn pages_are_not_stored_and_load_only_files_of_their_host() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    let page = reader.get("/").await;
    page.expect(200);
    assert_eq!(page.headers["content-security-policy"], POLICY);
    assert_eq!(page.headers["referrer-policy"], "same-origin");
    assert_eq!(page.headers["cache-control"], "no-store");
    let html = String::from_utf8_lossy(&page.body);
    let (_, style) = html.split_once("href=\"/assets/").unwrap();
    let (_, style) = style.split_once("href=\"/assets/").unwrap();
    let style = format!("/assets/{}", style.split('"').next().unwrap());

    let style = reader.get(&style).await;
    assert_eq!(style.expect(200).headers["content-type"], "text/css; charset=utf-8");
    assert_eq!(style.headers["cache-control"], "public, max-age=31536000, immutable");
    let old = reader.get("/assets/0000000000000000/console.css").await;
    assert_eq!(old.expect(200).headers["cache-control"], "no-store");
}

#[tokio::test]
async fn failures_are_pages_and_those_of_the_interface_are_problems() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    for missing in [
        "/executions/019cade2-11c0-7c16-bf3e-17fae47e173e",
        "/reports/019cade2-11c0-7c16-bf3e-17fae47e173e",
        "/cases/019cade2-11c0-7c16-bf3e-17fae47e173e",
        "/nothing/here",
    ] {
        let answer = reader.get(missing).await;
        assert_eq!(answer.expect(404).headers["content-type"], "text/html; charset=utf-8");
        assert!(String::from_utf8_lossy(&answer.body).contains("Page not found"), "{answer}");
    }
    reader.api().get("/api/nothing").await.is_problem(404, "not_found");
    // The interface ignores the cookie.
    reader.get("/api/projects").await.is_problem(401, "unauthenticated");
}

#[tokio::test]
async fn pages_of_another_customer_are_not_found() {
    let (owner, stranger) = (Customer::new().await, Customer::new().await);
    let (owner, stranger) = (Reader::new(&owner).await, Reader::new(&stranger).await);
    let (execution, path) = owner.upload(&junit("no bank", "")).await;
    let reports = owner.api().get(&format!("{path}/reports")).await.ok();
    let project = execution["ProjectId"].as_str().unwrap();
    let pool = json!({"Name": "accounts", "Values": [{"Contents": [{"Content": "ada"}]}]});
    let pool = owner.api().post(&format!("/api/projects/{project}/pools"), pool).await.created();
    for page in [
        format!("/projects/{project}"),
        format!("/projects/{project}/knownfailures"),
        format!("/projects/{project}/causes"),
        format!("/projects/{project}/monitors"),
        format!("/projects/{project}/pools"),
        format!("/projects/{project}/pools/{}", id(&pool)),
        format!("/projects/{project}/incidents"),
        format!("/projects/{project}/cases"),
        format!("/projects/{project}/sets"),
        format!("/projects/{project}/sets/{}/executions", execution["TestSetId"].as_str().unwrap()),
        format!("/projects/{project}/sets/{}", execution["TestSetId"].as_str().unwrap()),
        format!("/projects/{project}/sets/{}/gate", execution["TestSetId"].as_str().unwrap()),
        format!("/executions/{}", id(&execution)),
        format!("/executions/{}/progress", id(&execution)),
        format!("/executions/{0}/comparison?with={0}", id(&execution)),
        format!("/executions/{}/shares", id(&execution)),
        format!("/projects/{project}/executions/{}/junit", id(&execution)),
        format!("/projects/{project}/executions/{}/ctrf", id(&execution)),
        format!("/projects/{project}/executions/{}/report.html", id(&execution)),
        format!("/projects/{project}/executions/{}/report.pdf", id(&execution)),
        format!("/reports/{}", id(&reports[0])),
        format!("/reports/{}/log", id(&reports[0])),
        format!("/cases/{}", reports[0]["TestCaseId"].as_str().unwrap()),
    ] {
        let own = owner.get(&page).await;
        assert!(own.status.is_success() || own.status.is_redirection(), "{own}");
        stranger.get(&page).await.expect(404);
    }
}

#[tokio::test]
async fn an_installation_can_do_without_pages() {
    let world = World::start_with(|settings| settings.edge.console = false).await;
    world.anonymous().get("/").await.expect(404);
    world.anonymous().get("/login").await.expect(404);
    let project = create_project(&world.api).await;
    let sets = format!("{project}/testsets");
    let set = world.api.post(&sets, json!({"Name": "Nightly"})).await.created();
    let set = format!("{sets}/{}", id(&set));
    let answer = upload(&world.api, &set, report(1)).await;
    let execution = answer.expect(201).json();
    assert_eq!(execution["Url"], Value::Null);
    assert!(!answer.headers.contains_key("link"), "{answer}");
    world.stop().await;
}

#[tokio::test]
async fn requests_for_pages_are_charged_to_their_customer_and_refused_by_a_page() {
    let world = World::start_with(|settings| settings.edge.requests_per_customer = 20).await;
    let customer = Customer::of(Installation::clone(&world)).await;
    let busy = Reader::new(&customer).await;
    let other = Customer::of(Installation::clone(&world)).await;
    let mut answer = busy.get("/").await;
    for _ in 0..30 {
        if answer.status == 429 {
            break;
        }
        answer.expect(200);
        answer = busy.get("/").await;
    }
    let refused = answer.expect(429);
    assert!(String::from_utf8_lossy(&refused.body).contains("Too many requests"), "{refused}");
    assert!(refused.headers.contains_key("retry-after"), "{refused}");
    other.api.get("/api/projects").await.ok();
    world.stop().await;
}

#[tokio::test]
async fn answers_that_begin_and_end_an_execution_link_to_its_page() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    let (execution, path) = reader.start().await;
    let completed = reader.api().post(&format!("{path}/complete"), json!({})).await;
    let link = format!("/executions/{}", id(&execution));

    for page in [&execution, &completed.expect(200).json()] {
        assert!(page["Url"].as_str().unwrap().ends_with(&link), "{page}");
    }
    for read in ["", "/summary", "/verdict"] {
        let answer = reader.api().get(&format!("{path}{read}")).await;
        let header = answer.headers["link"].to_str().unwrap();
        let rest = header.split_once(&link).unwrap().1;
        assert_eq!(rest, ">; rel=\"alternate\"; type=\"text/html\"");
    }
    reader.get(&link).await.expect(200);
}

#[tokio::test]
async fn the_results_of_an_execution_can_be_downloaded_from_its_page() {
    let (reader, execution, path) = Reader::of_report(&junit("no bank", "")).await;
    let page = format!("/executions/{}", id(&execution));
    let html = reader.get(&page).await;
    let html = String::from_utf8_lossy(&html.expect(200).body).into_owned();
    for (format, media_type) in [("junit", "application/xml"), ("ctrf", "application/json")] {
        let project = execution["ProjectId"].as_str().unwrap();
        let link = format!("/projects/{project}{page}/{format}");
        assert!(html.contains(&format!("href=\"{link}\"")), "{html}");
        let file = reader.get(&link).await;
        let same = reader.api().get(&format!("{path}/{format}")).await;
        assert_eq!(file.expect(200).body, same.body);
        assert_eq!(file.headers["content-type"], media_type);
        let name = file.headers["content-disposition"].to_str().unwrap();
        assert!(name.starts_with("attachment; filename="), "{name}");
    }
}

#[tokio::test]
async fn tests_that_need_attention_have_a_page() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    reader.upload(&junit("", "")).await;
    let (execution, _) = reader.upload(&junit("no bank", "")).await;
    let project = execution["ProjectId"].as_str().unwrap();
    let case = json!({"Identifier": "checkout.invoice", "Name": "pays by invoice"});
    reader.api().post(&format!("/api/projects/{project}/testcases"), case).await.created();
    let text = async |path: &str| {
        let page = reader.get(path).await;
        String::from_utf8_lossy(&page.expect(200).body).into_owned()
    };

    let insights = format!("/projects/{project}/insights");
    let newly_failing = eventually("the results of the ended execution", || async {
        Some(text(&insights).await).filter(|page| page.contains("pays by card"))
    });
    let newly_failing = newly_failing.await;
    assert!(!newly_failing.contains("pays by transfer"), "{newly_failing}");
    let never_run = text(&format!("{insights}?kind=NeverRun")).await;
    assert!(never_run.contains("pays by invoice"), "{never_run}");
    assert!(!never_run.contains("pays by card"), "{never_run}");
    let page = text(&format!("/executions/{}", id(&execution))).await;
    assert!(page.contains("Gate failed") && page.contains("1 new failure"), "{page}");
}

#[tokio::test]
async fn a_test_set_shows_its_default_branch() {
    let (reader, execution, _) = Reader::of_report(&junit("no bank", "")).await;
    let names = json!({"Project": "Shop", "TestSet": "Every night", "Branch": "feature/tiny"});
    let tiny = reader.api().post("/api/executions", names).await.created();
    let project = execution["ProjectId"].as_str().unwrap();
    let at = format!("/api/projects/{project}/executions/{}", id(&tiny));
    let passed = json!([{"Identifier": "tiny", "Result": "Passed"}]);
    reader.api().post(&format!("{at}/results"), passed).await.ok();
    reader.api().post(&format!("{at}/complete"), json!({})).await.expect(200);

    let shown = async |path: &str| {
        let page = reader.get(path).await;
        String::from_utf8_lossy(&page.expect(200).body).into_owned()
    };
    let page = shown(&format!("/projects/{project}")).await;
    let card = page.split("class=\"card\"").nth(1).unwrap().split("</li>").next().unwrap();
    assert!(card.contains("1 failure</b> of 2 tests"), "{card}");
    assert!(card.contains("<bdi>main</bdi> · <time"), "{card}");

    let set = format!("/projects/{project}/sets/{}", tiny["TestSetId"].as_str().unwrap());
    let only_main = shown(&set).await;
    assert_eq!(only_main.matches("class=\"row run\"").count(), 1, "{only_main}");
    assert!(only_main.contains("Every branch"), "{only_main}");
    let every = shown(&format!("{set}?everyBranch=yes")).await;
    assert_eq!(every.matches("class=\"row run\"").count(), 2, "{every}");
    let other = shown(&format!("{set}?branch=feature%2Ftiny")).await;
    assert_eq!(other.matches("class=\"row run\"").count(), 1, "{other}");
}

#[tokio::test]
async fn a_rule_for_causes_is_tried_and_created() {
    let (reader, execution, _) =
        Reader::of_report(&junit("no bank for Smith", "no bank for Jones")).await;
    let page = format!("/projects/{}/causes", execution["ProjectId"].as_str().unwrap());
    let send = async |fields: &[(&str, &str)]| {
        let answer = Answer::of(filled(
            reader.request(Method::POST, &page).header("origin", &reader.url),
            fields,
        ))
        .await;
        String::from_utf8_lossy(&answer.body).into_owned()
    };
    let refused = send(&[("Pattern", "(a")]).await;
    assert!(refused.contains("unclosed group"), "{refused}");
    let pattern = r"for [A-Z]\w+";
    let preview = send(&[("Pattern", pattern)]).await;
    assert!(
        preview.contains("no bank for Smith") && preview.contains("no bank for Jones"),
        "{preview}"
    );
    send(&[("Pattern", pattern), ("create", "yes")]).await;
    let shown = reader.get(&page).await;
    let shown = String::from_utf8_lossy(&shown.expect(200).body).into_owned();
    assert!(shown.contains("for [A-Z]") && shown.contains("Delete"), "{shown}");
}
