//! The numbers of a page are those of the rows that their links show.

use serde_json::json;

use super::{Reader, tests};
use crate::{
    customer::Customer,
    world::{id, in_days},
};

const CASE: &str = "<testcase classname='shop' name=";

/// A report of an execution with results of all kinds, of which more pass than a page shows. Some tests
/// fail with a message if there is one.
fn report(broken: &str) -> String {
    let failing = |name: &str, message: &str| {
        let failure = format!("<failure message='{message}'>{message}</failure>");
        let failure = if message.is_empty() { String::new() } else { failure };
        format!("{CASE}'{name}'>{failure}</testcase>")
    };
    let lost = (0..7).map(|nr| failing(&format!("lost {nr}"), broken)).collect::<String>();
    let passed = (0..60).map(|nr| format!("{CASE}'passed {nr}'/>")).collect::<Vec<_>>().concat();
    format!(
        "<testsuite>{lost}{passed}{}{}{CASE}'skipped'><skipped/></testcase>\
         {CASE}'broken'><error message='no memory'>no memory</error></testcase>\
         {CASE}'flaky'><flakyFailure message='slow'>slow</flakyFailure></testcase></testsuite>",
        failing("known", "the old bug"),
        failing("known too", "the old bug"),
    )
}

/// Returns what follows a text up to another one.
pub(super) fn between<'a>(text: &'a str, start: &str, end: &str) -> Option<&'a str> {
    text.split_once(start)?.1.split_once(end).map(|(found, _)| found)
}

/// Returns the path of the next page of a list.
pub(super) fn next_page(page: &str) -> Option<String> {
    let pager = between(page, "<nav class=\"pager\"", "</nav>")?;
    let next = pager.split("<a ").find(|link| link.contains("rel=\"next\""))?;
    Some(between(next, "href=\"", "\"")?.replace("&amp;", "&"))
}

/// Returns the links of a part of a page that begin with a number, with this number.
pub(super) fn numbers(part: &str) -> Vec<(String, usize)> {
    let links = part.split("<a ").skip(1).filter_map(|link| {
        let href = between(link, "href=\"", "\"")?.replace("&amp;", "&");
        let number = between(link.split("</a>").next()?, "<b>", "</b>")?;
        let digits = number.split(' ').next()?.replace(',', "");
        Some((href, digits.parse().ok()?))
    });
    links.collect()
}

impl Reader {
    pub(super) async fn html(&self, path: &str) -> String {
        let page = self.get(path).await;
        String::from_utf8(page.expect(200).body.clone()).unwrap()
    }

    /// Counts the rows of all pages of a list. Those of a cause are counted in the list of the cause.
    pub(super) async fn rows(&self, path: &str) -> usize {
        let (mut path, mut rows) = (path.to_owned(), 0);
        loop {
            let page = self.html(&path).await;
            let groups: Vec<_> = page.split("<section class=\"group\">").skip(1).collect();
            for group in &groups {
                let header = group.split("</header>").next().unwrap();
                for (list, number) in numbers(header) {
                    assert_eq!(Box::pin(self.rows(&list)).await, number, "{list}");
                    rows += number;
                }
            }
            if groups.is_empty() {
                rows += page.matches("<li class=\"row test").count();
            }
            match next_page(&page) {
                Some(next) => path = next,
                None => return rows,
            }
        }
    }
}

#[tokio::test]
async fn each_number_of_an_execution_leads_to_as_many_rows() {
    let (reader, first, at) = Reader::of_report(&report("")).await;
    let causes = reader.api().get(&format!("{at}/failures?q=old")).await.ok();
    let known = json!({
        "Fingerprint": causes[0]["Fingerprint"], "EveryCase": true, "MutedUntil": in_days(30),
    });
    let project = first["ProjectId"].as_str().unwrap();
    let known_failures = format!("/api/projects/{project}/knownfailures");
    reader.api().post(&known_failures, known).await.created();
    let (execution, at) = reader.upload(&report("no bank")).await;
    let lost = reader.api().get(&format!("{at}/reports?q=lost")).await.ok();
    let review = json!({"Reports": [id(&lost[0]), id(&lost[1])], "Status": "Rejected"});
    reader.api().put(&format!("{at}/reviews"), review).await.ok();
    let share = reader.api().post(&format!("{at}/shares"), json!({})).await.created();

    let page = format!("/executions/{}", id(&execution));
    for (page, is_own) in
        [(page, true), (format!("/shared/{}", share["Token"].as_str().unwrap()), false)]
    {
        let html = reader.html(&page).await;
        let summary = between(&html, "id=\"summary\"", "</header>").unwrap();
        let found = numbers(summary);
        for part in ["change=New", "muted=true", "result=Error", "result=Canceled", "change=Flaky"]
        {
            assert!(
                found.iter().any(|(href, number)| href.contains(part) && *number > 0),
                "{part}: {found:?}"
            );
        }
        assert_eq!(found.iter().any(|(href, _)| href.contains("unreviewed=true")), is_own);
        for (list, number) in found {
            assert_eq!(reader.rows(&list).await, number, "{list}");
        }
    }
}

#[tokio::test]
async fn the_box_of_a_cause_has_the_number_of_all_of_its_tests_on_each_page() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    let names: Vec<_> = (0..60).map(|nr| format!("test {nr}")).collect();
    let report = tests(names.iter().map(|name| (name.as_str(), "no bank")));
    let (execution, at) = reader.upload(&report).await;
    let causes = reader.api().get(&format!("{at}/failures")).await.ok();
    let fingerprint = causes[0]["Fingerprint"].as_str().unwrap();
    let first = format!("/executions/{}?fingerprint={fingerprint}", id(&execution));
    let (mut page, mut pages) = (Some(first), 0);
    while let Some(path) = page {
        let html = reader.html(&path).await;
        let all = between(&html, "<input class=\"all\"", ">").expect(&html);
        assert!(all.contains("data-count=\"60\""), "{path}: {all}");
        (page, pages) = (next_page(&html), pages + 1);
    }
    assert_eq!(pages, 2);
}

#[tokio::test]
async fn an_old_run_says_how_many_of_its_failures_are_fixed_in_the_latest() {
    let customer = Customer::new().await;
    let reader = Reader::new(&customer).await;
    let of = |messages: [&'static str; 4]| {
        tests(["card", "cash", "coin", "note"].into_iter().zip(messages))
    };
    let (old, _) = reader.upload(&of(["no bank", "no bank", "", ""])).await;
    let page = format!("/executions/{}", id(&old));
    assert!(!reader.html(&page).await.contains("Compare"));
    let (latest, _) = reader.upload(&of(["", "no bank", "no coin", ""])).await;
    let html = reader.html(&page).await;
    assert!(html.contains("2 of 4 failed, and 1 of these 2 failures is fixed there."), "{html}");

    let link = format!("/executions/{}/comparison?with={}", id(&old), id(&latest));
    assert!(html.contains(&format!("href=\"{link}\"")), "{html}");
    let compared = reader.html(&link).await;
    assert_eq!(compared.matches("<li class=\"row past\"").count(), 2, "{compared}");
    for (name, now) in [("card", "Passed"), ("coin", "Failed")] {
        let row = compared.split("<li").find(|row| row.contains(&format!(">{name}<"))).unwrap();
        assert!(row.contains(&format!("aria-label=\"{now}\"")), "{row}");
    }
}
