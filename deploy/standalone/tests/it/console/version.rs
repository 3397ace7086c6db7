//! Forms in two tabs: none overwrites what the other one has saved, unless its user confirms it.

use serde_json::{Value, json};

use super::{Reader, conflict::values, junit, numbers::between};
use crate::world::id;

/// A form of a record, as two tabs fill it in.
struct Tabs<'a> {
    /// The page with the form, the path that the form is sent to, and that of the record in the interface.
    page: &'a str,
    target: &'a str,
    record: &'a str,
    /// Text before the form on the page.
    start: &'a str,
    /// Fields that the first tab saves, that the second one sends then, and that are not valid.
    first: &'a [(&'a str, &'a str)],
    second: &'a [(&'a str, &'a str)],
    wrong: &'a [(&'a str, &'a str)],
    /// The place of a changed value in the record, and what the second tab has entered for it.
    changed: &'a str,
    entered: Value,
}

impl Tabs<'_> {
    /// Returns the form of a page.
    fn form(&self, page: &str) -> String {
        between(page, self.start, "</form>").unwrap().to_owned()
    }

    /// Sends fields, which are refused. Returns the form.
    async fn refused(&self, reader: &Reader, fields: &[(&str, &str)]) -> String {
        let answer = reader.post(self.target, fields).await;
        self.form(&String::from_utf8_lossy(&answer.expect(422).body))
    }

    async fn check(&self, reader: &Reader) {
        let stored = async || {
            let record = reader.api().get(self.record).await.ok();
            record.pointer(self.changed).unwrap().clone()
        };
        let opened = values(&self.form(&reader.text(self.page).await), "version");
        let [version] = &opened[..] else { panic!("{}: {opened:?}", self.page) };
        let base = [("version", version.as_str())];
        reader.post(self.target, &[&base[..], self.first].concat()).await.expect(303);
        let saved = stored().await;
        assert_ne!(saved, self.entered);

        // A form that is refused for its contents keeps its version, too.
        for fields in [self.wrong, self.second, self.second] {
            let form = self.refused(reader, &[&base[..], fields].concat()).await;
            assert_eq!(values(&form, "version"), opened, "{form}");
            assert_eq!(stored().await, saved, "{}", self.page);
        }
        let form = self.refused(reader, &[&base[..], self.second].concat()).await;
        assert!(form.contains("Somebody else has changed this"), "{form}");
        let confirmed = values(&form, "replaced");
        let [replaced] = &confirmed[..] else { panic!("{form}") };

        // The confirmation holds for the change that was shown, and for no later one.
        let confirmed = [base[0], ("replaced", replaced.as_str())];
        let form = self.refused(reader, &[&confirmed[..], self.wrong].concat()).await;
        assert_eq!(values(&form, "version"), [replaced.as_str()], "{form}");
        reader.post(self.target, &[&confirmed[..], self.second].concat()).await.expect(303);
        assert_eq!(stored().await, self.entered, "{}", self.page);
        self.refused(reader, &[&confirmed[..], self.first].concat()).await;
        assert_eq!(stored().await, self.entered, "{}", self.page);
    }
}

#[tokio::test]
async fn a_form_that_is_refused_does_not_overwrite_what_another_tab_has_saved() {
    let (reader, execution, _) = Reader::of_report(&junit("", "")).await;
    let (project, set) = (&execution["ProjectId"], execution["TestSetId"].as_str().unwrap());
    let at = format!("/projects/{}", project.as_str().unwrap());
    let contents = |user: &str| json!([{"Name": "USER", "Content": user}]);
    let pool = json!({"Name": "accounts", "Values": [{"Contents": contents("ada")}]});
    let pool = reader.api().post(&format!("/api{at}/pools"), pool).await.created();
    let monitor = json!({
        "Name": "Flaky", "Measure": "Recoveries", "Threshold": 3, "Action": "Mute", "DryRun": true,
    });
    let monitor = reader.api().post(&format!("/api{at}/monitors"), monitor).await.created();

    let value = pool["Values"][0]["Id"].as_str().unwrap();
    let pool = format!("{at}/pools/{}", id(&pool));
    let long = "x".repeat(300);
    let of_value = |user| [("value", value), ("variable", "USER"), ("content", user)];
    Tabs {
        page: &format!("{pool}?value={value}"),
        target: &format!("{pool}/values"),
        record: &format!("/api{pool}"),
        start: "id=\"value\"",
        first: &of_value("grace"),
        second: &of_value("alan"),
        wrong: &[&of_value("alan")[..], &of_value("edsger")[1..]].concat(),
        changed: "/Values/0/Contents/0/Content",
        entered: json!("alan"),
    }
    .check(&reader)
    .await;
    Tabs {
        page: &pool,
        target: &pool,
        record: &format!("/api{pool}"),
        start: "<h2>Name</h2>",
        first: &[("name", "users")],
        second: &[("name", "buyers")],
        wrong: &[("name", long.as_str())],
        changed: "/Name",
        entered: json!("buyers"),
    }
    .check(&reader)
    .await;

    let monitor = format!("{at}/monitors/{}", id(&monitor));
    let rule = |name, runs| {
        [
            ("name", name),
            ("measure", "Recoveries"),
            ("threshold", "4"),
            ("runs", runs),
            ("recoverAfter", "10"),
            ("action", "Mute"),
        ]
    };
    Tabs {
        page: &monitor,
        target: &monitor,
        record: &format!("/api{monitor}"),
        start: "<h2>Change</h2>",
        first: &rule("Flaky", "30"),
        second: &rule("Shaky", "40"),
        wrong: &rule("Shaky", "3"),
        changed: "/Name",
        entered: json!("Shaky"),
    }
    .check(&reader)
    .await;

    let gate = format!("{at}/sets/{set}/gate");
    Tabs {
        page: &gate,
        target: &gate,
        record: &format!("/api{at}/testsets/{set}"),
        start: "<form class=\"filters\"",
        first: &[("maxNewFailures", "1")],
        second: &[("maxNewFailures", "2")],
        wrong: &[("maxNewFailures", "2"), ("flakyWithinRuns", "4")],
        changed: "/Gate/MaxNewFailures",
        entered: json!(2),
    }
    .check(&reader)
    .await;

    // Test cases that an execution adds to the set do not change its gate.
    let opened = values(&reader.text(&gate).await, "version");
    reader.upload(&super::tests([("pays by invoice", "")])).await;
    let fields = [("version", opened[0].as_str()), ("maxNewFailures", "3")];
    reader.post(&gate, &fields).await.expect(303);
}
