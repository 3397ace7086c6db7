//! Conditions on where tests belong, for statements on tables with the columns `suites` (`text[]`),
//! `labels` and `links` (`jsonb`).

use assay_proto::{ClassificationFilter, Fault};

use crate::Check;

/// A condition with one parameter, which stands between two parts of SQL.
#[derive(Clone, Debug)]
pub struct Criterion {
    pub before: &'static str,
    pub value: String,
    pub after: &'static str,
}

impl Criterion {
    /// Returns the condition with this parameter, such as `$7`.
    pub fn with(&self, parameter: &str) -> String {
        [self.before, parameter, self.after].concat()
    }
}

/// Returns the conditions of a filter, all of which a row has to meet.
pub fn criteria(filter: Option<ClassificationFilter>) -> Result<Vec<Criterion>, Fault> {
    let ClassificationFilter { tag, link, suite } = filter.unwrap_or_default();
    let mut check = Check::default();
    let mut criteria = Vec::new();
    for (field, value, before, after) in [
        (
            "tag",
            tag,
            TAGGED,
            " in (case label->>'Name' when 'tag' then label->>'Value' end, \
             (label->>'Name') || ':' || (label->>'Value')))",
        ),
        (
            "link",
            link,
            LINKED,
            " in (link->>'Target', substring(link->>'Target' from '([^/]+)/?$')))",
        ),
        ("suite", suite, "", " = any(suites)"),
    ] {
        let value = value.unwrap_or_default().trim().to_owned();
        check.text(field, &value);
        if !value.is_empty() {
            criteria.push(Criterion { before, value, after });
        }
    }
    check.done().map(|()| criteria)
}

const TAGGED: &str = "exists (select from jsonb_array_elements(labels) as label where ";
const LINKED: &str = "exists (select from jsonb_array_elements(links) as link where ";
