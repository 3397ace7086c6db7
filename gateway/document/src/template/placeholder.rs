//! Texts with placeholders.

use crate::{report::Report, text::line};

/// Maximum number of placeholders in a text.
const MOST: usize = 50;

/// Maximum number of bytes that a placeholder stands for.
const VALUE: usize = 500;

/// A text with placeholders.
#[derive(Debug)]
pub(crate) struct Text(Vec<Part>);

#[derive(Debug)]
enum Part {
    Literal(String),
    Placeholder(Value),
}

/// Returns a fact of an execution as text.
type Value = fn(&Report) -> String;

/// The placeholders, and the facts that they stand for.
const PLACEHOLDERS: [(&str, Value); 19] = [
    ("project", |report| report.project.clone()),
    ("testSet", |report| report.test_set.clone()),
    ("verdict", |report| report.verdict.label().to_owned()),
    ("result", |report| report.result.label.clone()),
    ("requestTime", |report| report.requested()),
    ("requestedBy", |report| report.requested_by.clone()),
    ("branch", |report| report.branch.clone()),
    ("commit", |report| report.commit.clone()),
    ("build", |report| report.build.clone()),
    ("environment", |report| report.environment.clone()),
    ("subject", |report| report.subject.clone()),
    ("tags", |report| report.tags.clone()),
    ("url", |report| report.url.clone()),
    ("total", |report| report.counts.total.to_string()),
    ("passed", |report| report.counts.passed.to_string()),
    ("failed", |report| (report.counts.failed + report.counts.errors).to_string()),
    ("new", |report| (report.changes.new + report.changes.cause_changed).to_string()),
    ("flaky", |report| report.changes.flaky.to_string()),
    ("known", |report| report.changes.muted.to_string()),
];

impl Text {
    /// Reads a text. `{{` and `}}` stand for braces.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (mut parts, mut literal, mut rest) = (Vec::new(), String::new(), text);
        let mut placeholders = 0;
        while let Some(brace) = rest.find(['{', '}']) {
            literal.push_str(&rest[..brace]);
            rest = &rest[brace..];
            if let Some(after) = rest.strip_prefix("{{") {
                literal.push('{');
                rest = after;
            } else if let Some(after) = rest.strip_prefix("}}") {
                literal.push('}');
                rest = after;
            } else {
                let inner = rest.strip_prefix('{').ok_or("`}` without `{`: write `}}`")?;
                let (name, after) = inner.split_once('}').ok_or("`{` without `}`: write `{{`")?;
                placeholders += 1;
                if placeholders > MOST {
                    return Err(format!("at most {MOST} placeholders are allowed"));
                }
                parts.push(Part::Literal(std::mem::take(&mut literal)));
                parts.push(Part::Placeholder(value(name)?));
                rest = after;
            }
        }
        literal.push_str(rest);
        parts.push(Part::Literal(literal));
        Ok(Self(parts))
    }

    /// Returns the text with the facts of an execution.
    pub(crate) fn fill(&self, report: &Report) -> String {
        let part = |part: &Part| match part {
            Part::Literal(text) => text.clone(),
            Part::Placeholder(value) => line(&value(report), VALUE),
        };
        self.0.iter().map(part).collect()
    }
}

fn value(name: &str) -> Result<Value, String> {
    let known = PLACEHOLDERS.iter().find(|(known, _)| *known == name);
    known.map(|(_, value)| *value).ok_or_else(|| {
        let known: Vec<_> = PLACEHOLDERS.iter().map(|(name, _)| format!("{{{name}}}")).collect();
        let name = line(name, 50);
        format!("there is not a placeholder `{{{name}}}`: use one of {}", known.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_stand_for_facts() {
        let report = Report { project: "Shop {testSet}".to_owned(), ..Report::default() };
        let text = Text::parse("{project}: {{{verdict}}}, {failed} of {total}").unwrap();
        assert_eq!(text.fill(&report), "Shop {testSet}: {Pending}, 0 of 0");
    }

    #[test]
    fn long_facts_are_cut() {
        let report = Report { project: "p".repeat(100_000), ..Report::default() };
        let text = Text::parse(&"{project}".repeat(MOST)).unwrap();
        assert!(text.fill(&report).len() < MOST * (VALUE + 10));
        assert!(Text::parse(&"{project}".repeat(MOST + 1)).is_err());
    }

    #[test]
    fn other_braces_are_faults() {
        for text in ["{", "}", "{}", "{project", "{{project}", "{ project }", "{project.name}"] {
            assert!(Text::parse(text).is_err(), "{text}");
        }
    }
}
