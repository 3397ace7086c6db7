//! Two people judge the same tests.

use assay_testkit::Answer;
use reqwest::Method;

use super::{Reader, filled, junit};
use crate::{customer::Customer, world::id};

const REFUSED: &str = "Error: connect ECONNREFUSED 127.0.0.1:38231";

/// Returns the values of the fields with a name, as the form of a page has them.
pub(super) fn values(page: &str, name: &str) -> Vec<String> {
    let fields = page.split('<').filter(|tag| tag.contains(&format!("name=\"{name}\"")));
    let value = |tag: &str| tag.split("value=\"").nth(1)?.split('"').next().map(str::to_owned);
    fields.filter_map(value).collect()
}

impl Reader {
    async fn page(&self, path: &str) -> String {
        String::from_utf8(self.get(path).await.expect(200).body.clone()).unwrap()
    }

    /// Sends the form of a page as it was read, filled in.
    async fn judge(&self, path: &str, page: &str, fields: &[(&str, &str)]) -> Answer {
        let kept =
            ["seen", "seenCause", "whole", "unreviewed"].map(|name| (name, values(page, name)));
        let kept = kept
            .iter()
            .flat_map(|(name, values)| values.iter().map(move |value| (*name, value.as_str())));
        let fields: Vec<_> = fields.iter().copied().chain(kept).collect();
        let request = self.request(Method::POST, path).header("origin", &self.url);
        Answer::of(filled(request, &fields)).await
    }
}

#[tokio::test]
async fn a_judgement_of_a_test_that_was_judged_since_shows_both() {
    let customer = Customer::new().await;
    let grace = Reader::new(&customer).await;
    let tom = Reader::with(&customer, "tom", super::DEVELOPER).await;
    let (_, at) = grace.upload(&junit(REFUSED, "")).await;
    let reports = grace.api().get(&format!("{at}/reports?result=Failed")).await.ok();
    let path = format!("/reports/{}", id(&reports[0]));
    let (first, second) = (grace.page(&path).await, tom.page(&path).await);

    let fields = [
        ("report", id(&reports[0])),
        ("status", "Rejected"),
        ("comment", "a real bug\r\nof the bank"),
        ("ticket", "SHOP-1"),
    ];
    grace.judge(&path, &first, &fields).await.expect(303);
    let other = [fields[0], ("status", "Accepted"), ("comment", "it is fine <b>")];
    let refused = tom.judge(&path, &second, &other).await;

    let refused = String::from_utf8(refused.expect(409).body.clone()).unwrap();
    let name = grace.api().get("/api/users/current").await.ok();
    let name = name["DisplayName"].as_str().unwrap();
    let alert = refused.split("role=\"alert\"").nth(1).unwrap().split("</p>").next().unwrap();
    for part in [name, "Rejected", "SHOP-1", "a real bug", "<b>Accepted</b>"] {
        assert!(alert.contains(part), "{part} in {alert}");
    }
    assert!(refused.contains("it is fine &lt;b&gt;</textarea>"), "the comment is kept");
    let stored = grace.api().get(&format!("{at}/reports?result=Failed")).await.ok();
    assert_eq!(
        (&stored[0]["Status"], &stored[0]["Ticket"]),
        (&"Rejected".into(), &"SHOP-1".into())
    );

    // Sent again, it replaces the other judgement and keeps nothing of it.
    tom.judge(&path, &refused, &other).await.expect(303);
    let stored = grace.api().get(&format!("{at}/reports?result=Failed")).await.ok();
    assert_eq!(stored[0]["Status"], "Accepted");
    assert_eq!(
        (&stored[0]["Ticket"], &stored[0]["Comment"]),
        (&"".into(), &"it is fine <b>".into())
    );
    let page = tom.page(&path).await;
    let name = tom.api().get("/api/users/current").await.ok();
    assert!(page.contains(&format!(" by <bdi>{}</bdi>", name["DisplayName"].as_str().unwrap())));
    assert!(page.contains("it is fine &lt;b&gt;</textarea>"), "it can be edited");
}

#[tokio::test]
async fn a_judgement_of_a_whole_cause_that_was_judged_since_shows_both() {
    let customer = Customer::new().await;
    let grace = Reader::new(&customer).await;
    let tom = Reader::with(&customer, "tom", super::DEVELOPER).await;
    let (execution, at) = grace.upload(&junit(REFUSED, REFUSED)).await;
    let causes = grace.api().get(&format!("{at}/failures")).await.ok();
    let cause = causes[0]["Fingerprint"].as_str().unwrap();
    let page = format!("/executions/{}", id(&execution));
    let stored = async |status: &str| {
        let reports = grace.api().get(&format!("{at}/reports?status={status}")).await.ok();
        reports.as_array().unwrap().len()
    };
    for path in [format!("{page}/triage?cause={cause}"), page] {
        let (first, second) = (grace.page(&path).await, tom.page(&path).await);
        assert_eq!(values(&second, "seenCause").len(), 1, "{second}");
        let fields = [
            ("cause", cause),
            ("status", "Rejected"),
            ("ticket", "SHOP-1"),
            ("comment", "a real bug"),
        ];
        grace.judge(&path, &first, &fields).await.expect(303);
        let other = [("cause", cause), ("status", "Accepted"), ("comment", "the bank is closed")];
        let refused = tom.judge(&path, &second, &other).await;

        let refused = String::from_utf8(refused.expect(409).body.clone()).unwrap();
        let alert = refused.split("role=\"alert\"").nth(1).unwrap().split("</p>").next().unwrap();
        for part in ["Rejected", "SHOP-1", "a real bug", "<b>Accepted</b>"] {
            assert!(alert.contains(part), "{part} in {alert}");
        }
        assert!(refused.contains("value=\"the bank is closed\""), "the comment is kept: {refused}");
        assert_eq!((stored("Rejected").await, stored("Accepted").await), (2, 0));
        // Sent again, it replaces the other judgement.
        tom.judge(&path, &refused, &other).await.expect(303);
        assert_eq!((stored("Rejected").await, stored("Accepted").await), (0, 2));
    }
}

#[tokio::test]
async fn a_judgement_of_a_cause_of_which_the_page_shows_a_part_is_refused_if_another_part_was_judged()
 {
    let customer = Customer::new().await;
    let grace = Reader::new(&customer).await;
    let names: Vec<_> = (0..60).map(|nr| format!("test {nr:02}")).collect();
    let report = super::tests(names.iter().map(|name| (name.as_str(), REFUSED)));
    let (execution, at) = grace.upload(&report).await;
    let causes = grace.api().get(&format!("{at}/failures")).await.ok();
    let cause = causes[0]["Fingerprint"].as_str().unwrap();
    let path = format!("/executions/{}?fingerprint={cause}", id(&execution));
    let opened = grace.page(&path).await;
    assert_eq!((values(&opened, "seen").len(), values(&opened, "seenCause").len()), (50, 1));
    let reports = grace.api().get(&format!("{at}/reports?limit=100")).await.ok();
    let review = serde_json::json!({"Reports": [id(&reports[59])], "Status": "Rejected"});
    grace.api().put(&format!("{at}/reviews"), review).await.ok();

    let all = [("cause", cause), ("status", "Accepted")];
    let refused = grace.judge(&path, &opened, &all).await;
    let refused = String::from_utf8(refused.expect(409).body.clone()).unwrap();
    assert!(refused.contains("test 59"), "{refused}");
}

#[tokio::test]
async fn a_bulk_judgement_of_tests_that_were_judged_since_keeps_what_was_typed() {
    let (grace, execution, at) = Reader::of_report(&junit(REFUSED, REFUSED)).await;
    let path = format!("/executions/{}", id(&execution));
    let old = grace.page(&path).await;
    let selected = values(&old, "report");
    assert_eq!((selected.len(), values(&old, "seen").len()), (2, 2));
    let causes = grace.api().get(&format!("{at}/failures")).await.ok();
    let cause = causes[0]["Fingerprint"].as_str().unwrap();
    let of_cause = format!("{path}?fingerprint={cause}");
    let old_cause = grace.page(&of_cause).await;
    let one = [("report", &*selected[1]), ("status", "Rejected"), ("ticket", "SHOP-1")];
    grace.judge(&path, &old, &one).await.expect(303);

    let both = [("report", &*selected[0]), ("report", &*selected[1])];
    for (path, old, selection) in
        [(&path, &old, &both[..]), (&of_cause, &old_cause, &[("cause", cause)])]
    {
        let fields = [selection, &[("status", "Accepted"), ("comment", "the bank is closed")]];
        let refused = grace.judge(path, old, &fields.concat()).await;
        let refused = String::from_utf8(refused.expect(409).body.clone()).unwrap();
        assert!(refused.contains("value=\"the bank is closed\""), "{refused}");
        assert!(refused.contains("SHOP-1") && refused.contains("<b>Accepted</b>"), "{refused}");
        let reports = grace.api().get(&format!("{at}/reports?status=Accepted")).await.ok();
        assert_eq!(reports.as_array().unwrap().len(), 0, "all or none");
    }

    // A test that nobody has judged since is judged.
    let fields = [both[0], ("status", "Accepted")];
    grace.judge(&path, &old, &fields).await.expect(303);
}

#[tokio::test]
async fn a_bulk_judgement_that_is_sent_again_keeps_the_texts_of_the_tests_where_it_has_none() {
    let (grace, execution, at) = Reader::of_report(&junit(REFUSED, REFUSED)).await;
    let path = format!("/executions/{}", id(&execution));
    let old = grace.page(&path).await;
    let selected = values(&old, "report");
    let theirs = [
        ("report", &*selected[1]),
        ("status", "Rejected"),
        ("ticket", "SHOP-1"),
        ("comment", "a real bug"),
    ];
    grace.judge(&path, &old, &theirs).await.expect(303);

    let both = [("report", &*selected[0]), ("report", &*selected[1]), ("status", "Accepted")];
    let refused = grace.judge(&path, &old, &both).await;
    let refused = String::from_utf8(refused.expect(409).body.clone()).unwrap();
    assert!(refused.contains("Empty fields keep what tests have."), "{refused}");
    grace.judge(&path, &refused, &both).await.expect(303);
    let stored = grace.api().get(&format!("{at}/reports?status=Accepted")).await.ok();
    assert_eq!(stored.as_array().unwrap().len(), 2);
    let stored = stored.as_array().unwrap().iter().find(|report| id(report) == selected[1]);
    let stored = stored.unwrap();
    assert_eq!((&stored["Ticket"], &stored["Comment"]), (&"SHOP-1".into(), &"a real bug".into()));
}

#[tokio::test]
async fn a_judgement_that_was_refused_for_its_date_replaces_no_judgement_made_since() {
    let customer = Customer::new().await;
    let grace = Reader::new(&customer).await;
    let tom = Reader::with(&customer, "tom", super::DEVELOPER).await;
    let (execution, at) = grace.upload(&junit(REFUSED, REFUSED)).await;
    let reports = grace.api().get(&format!("{at}/reports?result=Failed")).await.ok();
    let test = id(&reports[0]);
    let (one, list) = (format!("/reports/{test}"), format!("/executions/{}", id(&execution)));
    for (path, status) in [(&one, "Rejected"), (&list, "Investigation")] {
        let (opened, others) = (grace.page(path).await, tom.page(&one).await);
        let theirs = [("report", test), ("status", status), ("ticket", "SHOP-1")];
        tom.judge(&one, &others, &theirs).await.expect(303);
        let fields = [("report", test), ("status", "Accepted"), ("until", "tomorrow")];
        let wrong = grace.judge(path, &opened, &fields).await;
        let wrong = String::from_utf8(wrong.expect(422).body.clone()).unwrap();
        assert!(wrong.contains("yyyy-mm-dd"), "{wrong}");

        let refused = grace.judge(path, &wrong, &fields[..2]).await;
        let refused = String::from_utf8(refused.expect(409).body.clone()).unwrap();
        assert!(refused.contains("Reviewed since this page was shown"), "{refused}");
        let stored = grace.api().get(&format!("{at}/reports?status={status}")).await.ok();
        assert_eq!(stored.as_array().unwrap().len(), 1, "{path}");
    }
}
