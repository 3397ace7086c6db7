//! The sentence that explains a judgement.

use crate::{Change, Outcome, Rule, history::Evidence};

/// Returns why a result was judged like this. The subject of the sentence is the test.
pub(crate) fn of(change: Change, outcome: Outcome, evidence: &Evidence, rule: Rule) -> String {
    let Evidence { runs, failures, breaks, in_a_row, .. } = *evidence;
    match change {
        Change::None => String::new(),
        Change::New if runs == 0 => "never ran before".to_owned(),
        Change::New if evidence.failed_before => format!(
            "fails for the {} time in a row, which its flakiness does not explain",
            ordinal(in_a_row)
        ),
        Change::New if failures == 0 => {
            format!("passed in all of its last {}", number(runs, "run"))
        }
        Change::New => format!(
            "passed before; {} in its last {} do not make it flaky",
            number(failures, "failure"),
            number(runs, "run"),
        ),
        Change::Still => format!("fails for the {} time in a row", ordinal(in_a_row.max(2))),
        Change::CauseChanged => "failed before, for another cause".to_owned(),
        Change::Fixed => "failed before, and was not flaky".to_owned(),
        Change::Flaky if outcome == Outcome::PassedOnRetry => "passed on a retry".to_owned(),
        Change::Flaky if evidence.differs_on_commit => {
            "passed and failed on one commit, so this is not new".to_owned()
        }
        Change::Flaky if breaks >= rule.breaks => format!(
            "failed in {failures} of its last {}, and recovered {breaks} times, so this is not new",
            number(runs, "run"),
        ),
        Change::Flaky => {
            format!("passed on a retry within its last {}, so this is not new", number(runs, "run"))
        }
    }
}

pub(crate) fn number(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

fn ordinal(number: usize) -> String {
    let ending = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

#[cfg(test)]
mod tests {
    use super::ordinal;

    #[test]
    fn ordinals_are_spoken() {
        let spoken = [1, 2, 3, 4, 11, 12, 22, 113].map(ordinal);
        assert_eq!(spoken, ["1st", "2nd", "3rd", "4th", "11th", "12th", "22nd", "113th"]);
    }
}
