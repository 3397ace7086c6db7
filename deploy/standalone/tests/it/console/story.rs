//! A developer follows the link that a job prints to its failures, and judges them.

use std::fs;

use fantoccini::{Locator, key::Key};
use serde_json::{Value, json};

use super::Reader;
use crate::{
    browser::Browser,
    ci::{Job, executions},
    customer::Customer,
    world::id,
};

const REFUSED: &str = "Error: connect ECONNREFUSED 127.0.0.1";

/// A picture of one pixel.
const PICTURE: &[u8] = b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff!\xf9\x04\x01\0\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";

/// A report of three tests, of which two fail or not, with a picture.
fn report(failing: bool) -> String {
    let test = |name: &str, port: u16| {
        let failure = format!(
            "<failure message='{REFUSED}:{port}'>{REFUSED}:{port}</failure>
             <system-out>[[ATTACHMENT|shots/cart.gif]]</system-out>"
        );
        let failure = if failing { failure } else { String::new() };
        format!("<testcase classname='checkout' name='{name}' time='8.2'>{failure}</testcase>")
    };
    let (card, transfer) = (test("pays by card", 38231), test("pays by transfer", 38310));
    format!("<testsuite>{card}{transfer}<testcase classname='cart' name='adds'/></testsuite>")
}

impl Browser {
    async fn press(&self, keys: &str) {
        self.find("body").await.send_keys(keys).await.unwrap();
    }

    /// The path of the page, with its query.
    async fn path(&self) -> String {
        let url = self.client.current_url().await.unwrap();
        url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()))
    }

    async fn count(&self, css: &str) -> usize {
        self.client.find_all(Locator::Css(css)).await.unwrap().len()
    }

    /// Waits until the picture of a step is loaded.
    async fn see_picture(&self) {
        self.find(".pictures img").await;
        assay_testkit::eventually("the picture", || async {
            let width = "return document.querySelector('.pictures img').naturalWidth";
            let width: Value = self.client.execute(width, Vec::new()).await.ok()?;
            (width == 1).then_some(())
        })
        .await;
    }

    /// Checks that the page has loaded files of this host only.
    async fn loads_only_from(&self, host: &str) {
        let loaded = self.loaded().await;
        assert!(loaded.iter().any(|name| name.ends_with("/console.css")), "{loaded:?}");
        assert_eq!(loaded.iter().find(|name| !name.starts_with(host)), None);
    }
}

/// Uploads a report, and returns the path of the link that `assay-ci` prints.
async fn upload(job: &Job, failing: bool) -> String {
    job.report(&report(failing));
    let (code, output) = job.assay_ci("upload reports/junit.xml --branch main --gate").await;
    assert_eq!(code, i32::from(failing), "{output}");
    let link = output.lines().find(|line| line.contains("/executions/")).expect("a link");
    link.split_at(link.find("/executions/").unwrap()).1.to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_link_of_a_job_leads_to_new_failures_that_are_judged_together() {
    for (browser, with_scripts) in
        [(Browser::open().await, true), (Browser::open_without_scripts().await, false)]
    {
        let customer = Customer::new().await;
        let (job, reader) = (Job::new(&customer).await, Reader::new(&customer).await);
        fs::create_dir(job.folder.join("reports/shots")).unwrap();
        fs::write(job.folder.join("reports/shots/cart.gif"), PICTURE).unwrap();
        upload(&job, false).await;
        let link = upload(&job, true).await;

        // The login leads to the page of the link, whose new failures are first.
        reader.open(&browser, &link).await;
        assert_eq!(browser.path().await, link);
        browser.read_until(".tabs [aria-current]", |text| text == "2 New").await;
        browser.read_until(".group .headline", |text| text.starts_with("Error: connect")).await;
        assert_eq!((browser.count(".group").await, browser.count(".group .row").await), (1, 2));
        browser.loads_only_from(&reader.url).await;

        // The first failure: message, picture and history.
        if with_scripts {
            browser.press("j").await;
            let focused = browser.client.active_element().await.unwrap();
            assert_eq!(focused.text().await.unwrap(), "pays by card");
            focused.send_keys(&char::from(Key::Enter).to_string()).await.unwrap();
        } else {
            browser.click(".group .row a").await;
        }
        browser.read_until("h1", |text| text == "pays by card").await;
        browser.read_until(".trail", |text| text.contains("shop\nnightly\n")).await;
        browser.read_until(".text.failed pre", |text| text.contains(REFUSED)).await;
        assert_eq!(browser.count(".runs li").await, 2);
        browser.see_picture().await;
        browser.loads_only_from(&reader.url).await;

        // The next failure, and back to the list with its filter.
        for heading in ["pays by transfer", "nightly"] {
            if with_scripts {
                browser.press("j").await;
            } else {
                browser.click("a[rel=next]").await;
            }
            browser.read_until("h1", |text| text == heading).await;
        }
        let path = browser.path().await;
        assert!(path.starts_with(&format!("{link}?change=New&last=")), "{path}");
        browser.read_until(".done", |text| text.ends_with("0 of 2 reviewed.")).await;

        // Both are judged in one request.
        for row in browser.client.find_all(Locator::Css(".row [type=checkbox]")).await.unwrap() {
            row.click().await.unwrap();
        }
        browser.type_into("[name=comment]", "the bank is closed").await;
        browser.click("#review [value=Accepted]").await;
        browser.read_until("[role=status]", |text| text == "2 tests reviewed.").await;
        browser.loads_only_from(&reader.url).await;
        let execution = executions(&customer.api).await.remove(0);
        assert!(link.ends_with(id(&execution)), "{link}");
        let path = format!("/api/projects/0/executions/{}/reports", id(&execution));
        let judged = customer.api.get(&format!("{path}?status=Accepted")).await.ok();
        let comments = judged.as_array().unwrap().iter().map(|report| &report["Comment"]);
        let expected = json!("the bank is closed");
        assert_eq!(comments.collect::<Vec<_>>(), [&expected, &expected]);

        browser.click(".user button").await;
        browser.find("form.login").await;
        browser.client.clone().close().await.unwrap();
    }
}
