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

    #[test]
    fn merged_runs_are_attempts() {
        let merged = |runs: &str| {
            format!(
                "*HTML* <span class=\"merge\">Test has been re-executed and results merged.</span><hr>{runs}"
            )
        };
        let run = |age: &str, status: &str, message: &str| {
            let class = age.to_lowercase();
            let message = match message {
                "" => String::new(),
                text => format!("<span class=\"{class}-message\">{age} message:</span> {text}<br>"),
            };
            format!(
                "<span class=\"{class}-status\">{age} status:</span> <span class=\"x\">{status}</span><br>{message}"
            )
        };
        let flaky = merged(&[run("New", "PASS", ""), run("Old", "FAIL", "1 &lt; 2")].join("<hr>"));
        let red = [run("New", "FAIL", "no"), run("Old", "FAIL", "b"), run("Old", "FAIL", "a")];
        let red = merged(&red.join("<hr>"));
        let escaped = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;");
        let xml = format!(
            "<robot><suite name='Shop'><test name='flaky'><status status='PASS'>{}</status></test>\
             <test name='red'><status status='FAIL'>{}</status></test></suite></robot>",
            escaped(&flaky),
            escaped(&red)
        );
        let json = serde_json::json!({"generator": "Rebot", "rpa": false, "suite": {"name": "Shop", "tests": [
            {"name": "flaky", "status": "PASS", "message": flaky},
            {"name": "red", "status": "FAIL", "message": red},
        ]}});
        for file in [xml, json.to_string()] {
            let mut found = Vec::new();
            read(file.as_bytes(), |test: Test| {
                let messages = test.attempts.iter().map(|attempt| {
                    attempt
                        .problems
                        .iter()
                        .map(|problem| problem.message.clone())
                        .collect::<String>()
                });
                found.push((test.is_flaky(), messages.collect::<Vec<_>>()));
                Ok(())
            })
            .unwrap();
            let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
            let expected: [(bool, Vec<String>); 2] =
                [(true, texts(&["1 < 2", ""])), (false, texts(&["a", "b", "no"]))];
            assert_eq!(found, expected, "{file}");
        }
    }
}
