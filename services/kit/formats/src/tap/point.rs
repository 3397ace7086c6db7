//! Lines with the result of a test, and plans.

use assay_proto::TestResult;

use crate::{
    Attempt, Nature, Problem, durations::seconds, limits::MESSAGE, names::named, texts::beginning,
};

/// A test point, such as `not ok 2 - refuses # TODO not yet`.
pub(super) struct Point {
    is_ok: bool,
    /// Number, unless the line has none.
    number: Option<usize>,
    name: String,
    seconds: f64,
    /// Reason of a directive to skip the test, or not to expect it to pass.
    directive: Option<String>,
    /// Why the test failed, if the line says so.
    message: String,
    /// Whether the line ends with a bracket, which the tests of a subtest follow.
    is_open: bool,
}

/// Returns the number of tests of a plan such as `1..7`, and why it has none: `1..0 # SKIP no printer`.
pub(super) fn plan(text: &str) -> Option<(usize, Option<&str>)> {
    let rest = text.strip_prefix("1..")?;
    let end = rest.find(|char: char| !char.is_ascii_digit()).unwrap_or(rest.len());
    let (number, rest) = rest.split_at(end);
    let tests = number.parse().ok()?;
    let rest = rest.trim();
    if !rest.is_empty() && !rest.starts_with('#') {
        return None;
    }
    Some((tests, directive(rest).1))
}

impl Point {
    pub(super) fn parse(line: &str) -> Option<Self> {
        let (is_ok, rest) = match line.strip_prefix("not ") {
            Some(rest) => (false, rest.strip_prefix("ok")?),
            None => (true, line.strip_prefix("ok")?),
        };
        if !rest.is_empty() && !rest.starts_with(' ') {
            return None;
        }
        let rest = rest.trim();
        let open = rest
            .strip_suffix('{')
            .filter(|rest| rest.is_empty() || rest.ends_with(char::is_whitespace));
        let rest = open.map_or(rest, str::trim_end);
        let digits = rest.find(|char: char| !char.is_ascii_digit()).unwrap_or(rest.len());
        let (number, rest) = rest.split_at(digits);
        let rest = rest.trim_start();
        let described = rest.strip_prefix("- ");
        let (rest, timeout) = without_timeout(described.unwrap_or(rest));
        let (rest, commented) = time_in_comment(rest);
        let (name, directive) = directive(rest);
        let (name, timed) = time_in_name(name, described.is_some());
        let name = if name.is_empty() { number } else { name };
        Some(Self {
            is_ok,
            number: number.parse().ok(),
            name: named(&name.replace("\\#", "#")),
            seconds: commented.or(timed).unwrap_or_default(),
            directive: directive.map(|reason| beginning(reason, MESSAGE)),
            message: timeout.map(|timeout| beginning(timeout, MESSAGE)).unwrap_or_default(),
            is_open: open.is_some(),
        })
    }

    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Makes the bracket a part of the name, because no tests follow it.
    pub(super) fn keep_bracket(&mut self) {
        if std::mem::take(&mut self.is_open) {
            self.name.push_str(" {");
        }
    }

    pub(super) fn number(&self) -> Option<usize> {
        self.number
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn result(&self) -> TestResult {
        match (&self.directive, self.is_ok) {
            (Some(_), _) => TestResult::Canceled,
            (None, true) => TestResult::Passed,
            (None, false) => TestResult::Failed,
        }
    }

    pub(super) fn attempt(&self) -> Attempt {
        let (result, seconds) = (self.result(), self.seconds);
        let message = self.message.clone();
        let problem = |nature| Problem { nature, message, ..Problem::default() };
        let problems = Nature::of(result).map(problem).into_iter().collect();
        let reason = self.directive.clone().unwrap_or_default();
        Attempt { seconds, result, reason, problems, ..Attempt::default() }
    }
}

/// Splits a description from the comment that bats adds to a test that took too long.
fn without_timeout(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(" # timeout after ") {
        Some((name, _)) => (name, text.get(name.len() + 3..)),
        None => (text, None),
    }
}

/// Splits a description from the time that node-tap and Vitest write behind it: `# time=2.5ms`.
fn time_in_comment(text: &str) -> (&str, Option<f64>) {
    let Some((name, time)) = text.rsplit_once("# time=") else { return (text, None) };
    match seconds(time.trim_end_matches(['{', ' ']), true) {
        Some(seconds) => (name.trim_end(), Some(seconds)),
        None => (text, None),
    }
}

/// Splits a name from the time behind it: `adds in 14ms` of bats, which writes no dash in front of
/// names, and `boolean    119 ms` of `pg_regress`, which aligns times.
fn time_in_name(name: &str, has_dash: bool) -> (&str, Option<f64>) {
    let of_bats = || name.rsplit_once(" in ").filter(|_| !has_dash);
    let of_postgres = || name.rsplit_once("  ").filter(|(_, time)| time.ends_with(" ms"));
    let is_time =
        |time: &str| time.ends_with("ms") && time.starts_with(|c: char| c.is_ascii_digit());
    let found = of_bats().or_else(of_postgres).filter(|(_, time)| is_time(time.trim()));
    match found.and_then(|(name, time)| Some((name.trim_end(), seconds(time, true)?))) {
        Some((name, seconds)) => (name, Some(seconds)),
        None => (name, None),
    }
}

/// Splits a description from its directive, of which it returns the reason.
fn directive(text: &str) -> (&str, Option<&str>) {
    for (position, _) in text.match_indices('#') {
        let (name, rest) = (&text[..position], text[position + 1..].trim_start());
        let word = rest.find(|char: char| !char.is_ascii_alphabetic()).unwrap_or(rest.len());
        let (word, reason) = rest.split_at(word);
        let is_directive = ["skip", "skipped", "todo"].contains(&&*word.to_ascii_lowercase());
        if is_directive && (name.is_empty() || name.ends_with(char::is_whitespace)) {
            return (name.trim_end(), Some(reason.trim_start_matches(':').trim()));
        }
    }
    (text.trim_end(), None)
}
