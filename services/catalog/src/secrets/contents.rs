//! The validation rules of variables.
//!
//! Rules are regular expressions without look-around and back-references, so that matching takes linear
//! time. The size of a compiled rule is limited. An empty content matches every rule.

use assay_proto::{Variable, VariableInput};
use assay_records::{Check, below};
use regex::{Regex, RegexBuilder};

use super::mask::MASK;

/// Maximum length of a rule, in characters.
const LONGEST: usize = 1000;

/// Maximum size of a compiled rule, in bytes.
const LARGEST: usize = 2 << 20;

/// Maximum depth of nested groups in a rule.
const DEEPEST: u32 = 50;

/// Maximum number of variables with a rule in one record.
const MOST: usize = 100;

/// Maximum number of rules that are checked when an execution starts. All were checked when they were
/// written.
const MOST_AT_START: usize = 100;

/// Checks written rules and contents.
pub(super) fn check_written(check: &mut Check, variables: &[VariableInput]) {
    let with_rules = variables.iter().filter(|variable| !variable.validation_rule.is_empty());
    if with_rules.count() > MOST {
        check.refuse("Variables", format!("must have at most {MOST} with a ValidationRule"));
        return;
    }
    for (index, variable) in variables.iter().enumerate() {
        if variable.validation_rule.is_empty() {
            continue;
        }
        let pointer = format!("Variables/{index}");
        match compile(&variable.validation_rule) {
            // The content behind a mask is checked when it is known.
            Ok(_) if variable.is_secured && variable.content == MASK => {}
            Ok(rule) => {
                let message = variable.validation_error_msg.as_deref();
                check_content(check, &pointer, &rule, message, &variable.content);
            }
            Err(problem) => check.refuse(below(&pointer, "ValidationRule"), problem),
        }
    }
}

/// Checks the decrypted contents of the variables of the record at `pointer`. `checked` counts the
/// rules that were checked so far.
pub(crate) fn check_stored(
    check: &mut Check,
    checked: &mut usize,
    pointer: &str,
    variables: &[Variable],
) {
    for variable in variables.iter().filter(|variable| !variable.validation_rule.is_empty()) {
        *checked += 1;
        if *checked > MOST_AT_START {
            return;
        }
        let pointer = below(&below(pointer, "Variables"), &variable.name);
        match compile(&variable.validation_rule) {
            Ok(rule) => {
                let message = variable.validation_error_msg.as_deref();
                check_content(check, &pointer, &rule, message, &variable.content);
            }
            Err(problem) => check.refuse(below(&pointer, "ValidationRule"), problem),
        }
    }
}

/// Returns whether an unchanged content matches a new rule.
pub(super) fn matches(rule: &str, content: &str) -> bool {
    content.is_empty() || compile(rule).is_ok_and(|rule| rule.is_match(content))
}

fn check_content(
    check: &mut Check,
    pointer: &str,
    rule: &Regex,
    message: Option<&str>,
    content: &str,
) {
    if !content.is_empty() && !rule.is_match(content) {
        let message = message.filter(|message| !message.trim().is_empty());
        let problem = message.unwrap_or("does not match the ValidationRule of the variable");
        check.refuse(format!("{pointer}/Content"), problem);
    }
}

fn compile(rule: &str) -> Result<Regex, String> {
    if rule.chars().count() > LONGEST {
        return Err(format!("must have at most {LONGEST} characters"));
    }
    let compiled = RegexBuilder::new(rule)
        .size_limit(LARGEST)
        .dfa_size_limit(LARGEST)
        .nest_limit(DEEPEST)
        .build();
    compiled.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => {
            "is too large when compiled; use fewer or smaller repetitions".to_owned()
        }
        _ => "is not a valid regular expression in RE2 syntax".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use assay_proto::Fault;

    use super::*;

    fn problems(rule: &str, content: &str, message: Option<&str>) -> Vec<(String, String)> {
        let variable = VariableInput {
            name: "USER".into(),
            validation_rule: rule.into(),
            validation_error_msg: message.map(ToOwned::to_owned),
            content: content.into(),
            ..VariableInput::default()
        };
        let mut check = Check::default();
        check_written(&mut check, &[variable]);
        match check.done() {
            Ok(()) => Vec::new(),
            Err(Fault::Invalid(violations)) => {
                violations.into_iter().map(|it| (it.field, it.problem)).collect()
            }
            Err(fault) => panic!("{fault}"),
        }
    }

    #[test]
    fn a_content_must_match_its_rule() {
        for (rule, content) in
            [("^[a-z]+$", "ada"), ("[0-9]", "a1b"), ("^[a-z]+$", ""), (r"^\w{1,30}$", "Zoë")]
        {
            assert_eq!(problems(rule, content, None), [], "{rule} and {content}");
        }
        let [(field, _)] = &problems("^[a-z]+$", "Ada", None)[..] else {
            panic!("the content should not match")
        };
        assert_eq!(field, "Variables/0/Content");
        let [(_, problem)] = &problems("^a$", "b", Some("Only a"))[..] else { panic!() };
        assert_eq!(problem, "Only a");
    }

    #[test]
    fn invalid_and_too_large_rules_are_rejected() {
        let long = "a".repeat(LONGEST + 1);
        let deep = format!("{}a{}", "(".repeat(60), ")".repeat(60));
        for rule in ["(", r"(a)\1", "(?=a)", "(a{1000}){1000}", r"\w{900}{20}", &long, &deep] {
            let problems = problems(rule, "", None);
            let [(field, _)] = &problems[..] else { panic!("{rule} should be rejected") };
            assert_eq!(field, "Variables/0/ValidationRule");
        }
    }

    #[test]
    fn a_rule_with_nested_repetitions_is_matched_in_linear_time() {
        let started = std::time::Instant::now();
        let content = format!("{}b", "a".repeat(60_000));
        assert_eq!(problems("^(a+)+$", &content, None).len(), 1);
        assert!(started.elapsed().as_secs() < 5);
    }
}
