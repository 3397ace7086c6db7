//! Tests that `rebot --merge` has merged from several runs. Their message is HTML with the results of all runs,
//! the last one first.

use super::result;
use crate::{
    Attempt,
    limits::{MESSAGE, MOST_ATTEMPTS},
    texts::beginning,
};

/// End of the heading of such a message, which begins with the mark of HTML.
const HEADING: &str = " has been re-executed and results merged.</span><hr>";
const HTML: &str = "*HTML*";

/// Returns the message of the last run of a test, and the attempts before it in their order.
pub(super) fn separate(message: &str) -> (String, Vec<Attempt>) {
    let runs = message
        .split_once(HEADING)
        .filter(|(heading, _)| heading.starts_with(HTML))
        .map_or("", |(_, runs)| runs);
    let mut runs = runs.split("<hr>").filter_map(run);
    let Some((_, own)) = runs.next() else { return (beginning(message, MESSAGE), Vec::new()) };
    let mut earlier: Vec<Attempt> = runs.map(attempt).take(MOST_ATTEMPTS - 1).collect();
    earlier.reverse();
    (own, earlier)
}

/// Returns status and message of a run: `New status: PASS`, or `Old status: FAIL` and `Old message: …`.
fn run(html: &str) -> Option<(&str, String)> {
    let (_, rest) = html.split_once(" status:</span> ")?;
    let (status, rest) = rest.split_once("</span>")?;
    let status = status.rsplit('>').next().unwrap_or_default();
    let message = rest.split_once(" message:</span> ").map_or("", |(_, message)| message);
    let message = message.trim_end().trim_end_matches("<br>");
    let plain = message.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    Some((status, beginning(&plain, MESSAGE)))
}

fn attempt((status, message): (&str, String)) -> Attempt {
    let mut attempt = Attempt::new(None, 0.0, result(status));
    match attempt.problems.last_mut() {
        Some(problem) => problem.message = message,
        None => attempt.reason = message,
    }
    attempt
}

#[cfg(test)]
mod tests {
    use crate::{Test, read};

    /// Returns the message of a test with these runs: age, status and message.
    fn merged(runs: &[(&str, &str, &str)]) -> String {
        let run = |(age, status, message): &(&str, &str, &str)| {
            let class = age.to_lowercase();
            let message = match *message {
                "" => String::new(),
                text => format!("<span class=\"{class}-message\">{age} message:</span> {text}<br>"),
            };
            format!(
                "<span class=\"{class}-status\">{age} status:</span> <span class=\"x\">{status}</span><br>{message}"
            )
        };
        let runs = runs.iter().map(run).collect::<Vec<_>>().join("<hr>");
        format!(
            "*HTML* <span class=\"merge\">Test has been re-executed and results merged.</span><hr>{runs}"
        )
    }

    /// Returns the XML and the JSON with tests: name, status and message.
    fn documents(tests: &[(&str, &str, &str)]) -> [String; 2] {
        let escaped = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;");
        let of_xml = tests.iter().map(|(name, status, message)| {
            let message = escaped(message);
            format!("<test name='{name}'><status status='{status}'>{message}</status></test>")
        });
        let xml = of_xml.collect::<Vec<_>>().concat();
        let of_json = tests.iter().map(|(name, status, message)| {
            serde_json::json!({"name": name, "status": status, "message": message})
        });
        let tests = of_json.collect::<Vec<_>>();
        let json = serde_json::json!({
            "generator": "Rebot", "rpa": false, "suite": {"name": "Shop", "tests": tests},
        });
        [format!("<robot><suite name='Shop'>{xml}</suite></robot>"), json.to_string()]
    }

    /// Returns for each test whether it is flaky, and the messages of its attempts.
    fn attempts(file: &str) -> Vec<(bool, Vec<String>)> {
        let mut found = Vec::new();
        read(file.as_bytes(), |test: Test| {
            let messages = test.attempts.iter().map(|attempt| {
                attempt.problems.iter().map(|problem| problem.message.clone()).collect::<String>()
            });
            found.push((test.is_flaky(), messages.collect::<Vec<_>>()));
            Ok(())
        })
        .unwrap();
        found
    }

    #[test]
    fn merged_runs_are_attempts() {
        let flaky = merged(&[("New", "PASS", ""), ("Old", "FAIL", "1 &lt; 2")]);
        let red = merged(&[("New", "FAIL", "no"), ("Old", "FAIL", "b"), ("Old", "FAIL", "a")]);
        for file in documents(&[("flaky", "PASS", flaky.as_str()), ("red", "FAIL", red.as_str())]) {
            let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
            let expected: [(bool, Vec<String>); 2] =
                [(true, texts(&["1 < 2", ""])), (false, texts(&["a", "b", "no"]))];
            assert_eq!(attempts(&file), expected, "{file}");
        }
    }

    #[test]
    fn long_messages_hide_no_run() {
        let [first, second, third] = ["a", "b", "c"].map(|letter| letter.repeat(3_000));
        let red = merged(&[
            ("New", "FAIL", third.as_str()),
            ("Old", "FAIL", second.as_str()),
            ("Old", "FAIL", first.as_str()),
        ]);
        let longest = "d".repeat(5_000);
        let flaky = merged(&[("New", "PASS", longest.as_str()), ("Old", "FAIL", first.as_str())]);
        let expected = [
            (false, vec![first.clone(), second, third]),
            (true, vec![first.clone(), String::new()]),
            (false, vec!["d".repeat(4 << 10)]),
        ];
        let tests = [
            ("red", "FAIL", red.as_str()),
            ("flaky", "PASS", flaky.as_str()),
            ("own", "FAIL", longest.as_str()),
        ];
        for file in documents(&tests) {
            assert_eq!(attempts(&file), expected);
        }
    }
}
