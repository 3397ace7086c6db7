//! Lists that a page shows in part have pages with all of their records, which can be filtered.

use serde_json::json;

use super::{
    Reader,
    numbers::{between, next_page},
};
use crate::{customer::Customer, world::id};

impl Reader {
    /// Counts the elements with this markup on a page and those that follow it.
    async fn count_all(&self, path: &str, markup: &str) -> usize {
        let (mut next, mut count) = (Some(path.to_owned()), 0);
        while let Some(path) = next {
            let page = self.html(&path).await;
            count += page.matches(markup).count();
            next = next_page(&page);
        }
        count
    }
}

#[tokio::test]
async fn all_test_sets_of_a_project_have_a_page() {
    const CARD: &str = "<li class=\"card\">";
    let (reader, execution, _) = Reader::of_report(&super::junit("no bank", "")).await;
    let project = format!("/projects/{}", execution["ProjectId"].as_str().unwrap());
    let all = format!("{project}/sets");
    let page = reader.html(&project).await;
    assert!(!page.contains("are shown") && !page.contains(&format!("\"{all}\"")), "{page}");
    for nr in 0..60 {
        let set = json!({"Name": format!("Set {nr}")});
        reader.api().post(&format!("/api{project}/testsets"), set).await.created();
    }
    let page = reader.html(&project).await;
    assert_eq!(page.matches(CARD).count(), 60);
    let hint = between(&page, "Only the first 60 test sets are shown.", "</p>").unwrap();
    assert!(hint.contains(&format!("href=\"{all}\">All test sets<")), "{hint}");

    let first = reader.html(&all).await;
    assert_eq!(first.matches(CARD).count(), 60);
    let last = reader.html(&next_page(&first).unwrap()).await;
    // The set with the failure is the oldest one.
    let card = between(&last, CARD, "</li>").unwrap();
    assert!(card.contains("Every night") && card.contains("1 failure</b> of 2 tests"), "{card}");
    assert!(last.contains("First page") && next_page(&last).is_none(), "{last}");
    assert_eq!(reader.count_all(&all, CARD).await, 61);
    assert_eq!(reader.count_all(&format!("{all}?q=set+5"), CARD).await, 11);
    let none = reader.html(&format!("{all}?q=weekly")).await;
    assert!(none.contains("No test set has this text in its name."), "{none}");
}

#[tokio::test]
async fn all_executions_of_a_test_set_have_a_page() {
    const ROW: &str = "<li class=\"row run\">";
    let (reader, first, at) = Reader::of_report(&super::junit("no bank", "")).await;
    let set = first["TestSetId"].as_str().unwrap();
    let set = format!("/projects/{}/sets/{set}", first["ProjectId"].as_str().unwrap());
    assert!(!reader.html(&set).await.contains("All executions"));
    for _ in 0..26 {
        reader.start().await;
    }
    let names = json!({"Project": "Shop", "TestSet": "Every night", "Branch": "tiny"});
    reader.api().post("/api/executions", names).await.created();

    for (query, count) in [("", 27), ("?branch=tiny", 1), ("?everyBranch=yes", 28)] {
        let page = reader.html(&format!("{set}{query}")).await;
        assert_eq!(page.matches(ROW).count(), count.min(10), "{query}");
        let link = page.split("<a ").find(|link| link.contains("All executions"));
        let Some(link) = link else {
            assert_eq!(count, 1, "{page}");
            continue;
        };
        let all = between(link, "href=\"", "\"").unwrap().replace("&amp;", "&");
        assert!(page.contains("Latest 10 executions") && all.starts_with(&format!("{set}/")));
        assert_eq!(reader.count_all(&all, ROW).await, count, "{all}");
    }
    let all = format!("{set}/executions");
    assert_eq!(reader.count_all(&format!("{all}?result=Failed"), ROW).await, 1);
    let none = reader.html(&format!("{all}?tag=weekly")).await;
    assert!(none.contains("Executions of <bdi>Every night</bdi>"), "{none}");
    assert!(none.contains("No execution matches these filters."), "{none}");

    // An execution in the archive leaves the page of its set, and stays here.
    reader.api().put(&at, json!({"Archived": true})).await.expect(204);
    let link = format!("/executions/{}\"", id(&first));
    assert!(reader.html(&format!("{all}?result=Failed")).await.contains(&link));
}

#[tokio::test]
async fn a_project_and_a_test_set_whose_executions_are_archived_lead_to_them() {
    let (reader, execution, at) = Reader::of_report(&super::junit("no bank", "")).await;
    reader.api().put(&at, json!({"Archived": true})).await.expect(204);
    let set = execution["TestSetId"].as_str().unwrap();
    let set = format!("/projects/{}/sets/{set}", execution["ProjectId"].as_str().unwrap());
    let page = reader.html(&set).await;
    assert!(!page.contains("No executions yet"), "{page}");
    let link = between(&page, "are archived. <a href=\"", "\"").unwrap();
    let link = link.replace("&amp;", "&");
    assert!(reader.html(&link).await.contains(&format!("/executions/{}\"", id(&execution))));

    let project = format!("/projects/{}", execution["ProjectId"].as_str().unwrap());
    let page = reader.html(&project).await;
    assert!(!page.contains("No executions yet"), "{page}");
    assert!(page.contains("All executions of this project are archived."), "{page}");
    assert!(page.contains(&format!("/executions/{}\"", id(&execution))), "{page}");
}

#[tokio::test]
async fn all_muted_tests_of_a_project_are_on_pages() {
    const TEST: &str = "href=\"/cases/";
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    let names: Vec<_> = (0..101).map(|nr| format!("test {nr}")).collect();
    let results = super::tests(names.iter().map(|name| (name.as_str(), "")));
    let (execution, at) = reader.upload(&results).await;
    let project = execution["ProjectId"].as_str().unwrap();
    let reports = reader.api().get(&format!("{at}/reports?limit=200")).await.ok();
    let mute = json!({"State": "Muted", "Until": crate::world::in_days(30)});
    for report in reports.as_array().unwrap() {
        let case = report["TestCaseId"].as_str().unwrap();
        let state = format!("/api/projects/{project}/testcases/{case}/state");
        reader.api().put(&state, mute.clone()).await.ok();
    }
    let page = format!("/projects/{project}/knownfailures");
    let first = reader.html(&page).await;
    assert_eq!(first.matches(TEST).count(), 100);
    let pager = between(&first, "aria-label=\"Pages of tests\"", "</nav>").unwrap();
    let next = between(pager, "href=\"", "#tests\"").unwrap().replace("&amp;", "&");
    let last = reader.html(&next).await;
    assert_eq!(last.matches(TEST).count(), 1);
    assert!(last.contains("First tests") && !last.contains("Next tests"), "{last}");
}

#[tokio::test]
async fn a_project_without_test_cases_says_so() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    let project = reader.api().post("/api/projects", json!({"Name": "Empty"})).await.created();
    let page = format!("/projects/{}/cases", id(&project));
    assert!(reader.html(&page).await.contains("This project has no test cases yet."));
    let filtered = reader.html(&format!("{page}?q=pay")).await;
    assert!(filtered.contains("No test case matches these filters."), "{filtered}");
}
