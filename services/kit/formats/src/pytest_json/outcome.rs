//! A test with its phases.

use assay_proto::{TestResult, Timestamp};
use serde::Deserialize;

use crate::{
    Attempt, Nature, Problem, Test,
    durations::duration,
    json::{List, Map, Name, Number, Tail, Text},
    limits::{MESSAGE, MOST_LABELS, OUTPUT, TEXT},
    texts::{beginning, keep_end},
    values::pytest_names,
};

/// Maximum number of log records of a phase.
const MOST_RECORDS: usize = 100;

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Reported {
    nodeid: Name,
    outcome: Text<16>,
    setup: Option<Phase>,
    call: Option<Phase>,
    teardown: Option<Phase>,
    /// A worker of pytest-xdist crashed.
    #[serde(rename = "???")]
    crash: Option<Phase>,
    user_properties: List<Map, MOST_LABELS>,
    metadata: Map,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Phase {
    /// Seconds.
    duration: Number,
    outcome: Text<16>,
    crash: Crash,
    longrepr: Text<TEXT>,
    stdout: Tail,
    stderr: Tail,
    log: List<Record, MOST_RECORDS>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Crash {
    message: Text<MESSAGE>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Record {
    levelname: Text<16>,
    msg: Text<MESSAGE>,
}

impl Reported {
    /// Returns the test. The start is that of the run.
    pub(super) fn into_test(self, start: Option<Timestamp>) -> Test {
        let (class, name) =
            pytest_names(&self.nodeid.0).unwrap_or_else(|| (String::new(), self.nodeid.0.clone()));
        let mut test = Test { class, name, ..Test::default() };
        let properties = self.user_properties.0.iter().flat_map(|Map(members)| members);
        for property in properties.chain(&self.metadata.0) {
            test.label(property.clone());
        }
        if self.outcome.0 == "rerun" {
            // Only the last attempt has details, and the number of others is unknown.
            test.push(Attempt::unreported());
        }
        let attempt = self.into_attempt();
        (test.start, test.seconds) = (start, attempt.seconds);
        test.push(Attempt { start: test.start, ..attempt });
        test
    }

    fn into_attempt(self) -> Attempt {
        let phases = [
            (Nature::Error, self.setup),
            (Nature::Failure, self.call),
            (Nature::Abortion, self.crash),
            (Nature::Error, self.teardown),
        ];
        let (mut seconds, mut problems) = (0.0, Vec::new());
        let (mut output, mut skipped) = (String::new(), String::new());
        for (nature, phase) in phases {
            let Some(phase) = phase else { continue };
            seconds += phase.duration.0.unwrap_or_default();
            phase.add_output(&mut output);
            let Phase { outcome, crash, longrepr, .. } = phase;
            match outcome.0.as_str() {
                "failed" | "error" => {
                    problems.push(explained(nature, &crash.message.0, &longrepr.0));
                }
                "skipped" if crash.message.0.is_empty() => skipped = reason(&longrepr.0),
                "skipped" => skipped = crash.message.0,
                _ => {}
            }
        }
        let outcome = self.outcome.0.as_str();
        if let (true, Some(nature)) = (problems.is_empty(), Nature::of_status(outcome)) {
            problems.push(explained(nature, "The test failed without a reason.", ""));
        }
        let attempt =
            Attempt { seconds: duration(Some(seconds)), output, ..Attempt::with(problems) };
        match outcome {
            _ if !attempt.problems.is_empty() => attempt,
            "passed" | "xpassed" | "rerun" => attempt,
            "skipped" | "xfailed" => {
                Attempt { result: TestResult::Canceled, reason: skipped, ..attempt }
            }
            _ => Attempt { result: TestResult::Aborted, ..attempt },
        }
    }
}

impl Phase {
    fn add_output(&self, output: &mut String) {
        keep_end(output, &self.stdout.0, OUTPUT);
        keep_end(output, &self.stderr.0, OUTPUT);
        for Record { levelname, msg } in &self.log.0 {
            keep_end(output, &format!("{}: {}\n", levelname.0, msg.0), OUTPUT);
        }
    }
}

/// Returns a problem. Without a message, it is the last line that pytest marks as an error.
pub(super) fn explained(nature: Nature, message: &str, text: &str) -> Problem {
    let text = without_worker(text);
    let marked = text.lines().rev().find_map(|line| line.strip_prefix("E "));
    let message = match message.trim() {
        "" => marked.or_else(|| text.lines().next()).unwrap_or_default().trim(),
        message => message,
    };
    let message = beginning(message, MESSAGE);
    let text = if text.trim() == message { "" } else { text }.to_owned();
    Problem { nature, message, text }
}

/// Returns the reason of a test that was skipped, which pytest writes as a tuple with its place:
/// `('/shop/test_shop.py', 12, 'Skipped: no printer')`.
pub(super) fn reason(text: &str) -> String {
    let text = without_worker(text).trim();
    let tuple = text.strip_prefix('(').and_then(|text| text.strip_suffix(')'));
    let reason = tuple.and_then(|tuple| tuple.splitn(3, ", ").nth(2)).unwrap_or(text);
    let reason = reason.trim_matches(['\'', '"']);
    beginning(reason.strip_prefix("Skipped: ").unwrap_or(reason), MESSAGE)
}

/// Returns a text without the line of pytest-xdist in front of it, `[gw0] linux -- Python 3.11.7`.
fn without_worker(text: &str) -> &str {
    let worker = text.strip_prefix("[gw").and_then(|_| text.split_once('\n'));
    worker.map_or(text, |(_, text)| text)
}
