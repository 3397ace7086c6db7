//! Rules for pools.

use std::{collections::HashSet, ops::RangeInclusive};

use assay_proto::{
    Fault,
    execution::{PoolContentInput, PoolInput},
};
use assay_records::Check;

/// Maximum number of pools of a project.
pub(super) const MOST: i64 = 200;

/// Number of values of a pool.
const VALUES: RangeInclusive<usize> = 1..=1000;

/// Number of contents of a value.
const CONTENTS: RangeInclusive<usize> = 1..=20;

/// Maximum length of the name of a content, in characters.
const LONGEST_NAME: usize = 255;

/// Returns a pool, if it is valid.
pub(super) fn valid(input: PoolInput) -> Result<PoolInput, Fault> {
    let mut check = Check::default();
    check.texts(&input);
    check.name_on_one_line("Name", &input.name);
    check.range("Values", input.values.len(), VALUES);
    for (index, value) in input.values.iter().enumerate() {
        check.within(format!("Values/{index}"), |check| contents(check, &value.contents));
    }
    check.done().map(|()| input)
}

fn contents(check: &mut Check, contents: &[PoolContentInput]) {
    check.range("Contents", contents.len(), CONTENTS);
    let mut names = HashSet::new();
    for (index, content) in contents.iter().enumerate() {
        let field = format!("Contents/{index}/Name");
        check.line(&field, &content.name, 0..=LONGEST_NAME);
        if !names.insert(&content.name) {
            check.refuse(field, "must be unique in its value");
        }
    }
}

#[cfg(test)]
mod tests {
    use assay_proto::execution::PoolValueInput;

    use super::*;

    fn problems(values: &[&[&str]]) -> Vec<String> {
        let content =
            |name: &&str| PoolContentInput { name: (*name).to_owned(), ..Default::default() };
        let value = |names: &&[&str]| PoolValueInput {
            id: None,
            contents: names.iter().map(content).collect(),
        };
        let values = values.iter().map(value).collect();
        match valid(PoolInput { name: "accounts".into(), values }) {
            Ok(_) => Vec::new(),
            Err(Fault::Invalid(violations)) => {
                violations.into_iter().map(|violation| violation.field).collect()
            }
            Err(fault) => panic!("{fault}"),
        }
    }

    #[test]
    fn a_pool_has_values_with_contents_of_different_names() {
        assert_eq!(problems(&[&["USER", "PASSWORD"], &[""]]), [""; 0]);
        assert_eq!(problems(&[]), ["Values"]);
        assert_eq!(problems(&[&[]]), ["Values/0/Contents"]);
        assert_eq!(problems(&[&["A"], &["A", "B", "A"]]), ["Values/1/Contents/2/Name"]);
    }
}
