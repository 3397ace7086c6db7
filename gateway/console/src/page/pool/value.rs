//! A value of a pool, as a row of its page or in a form.

use maud::{Markup, html};

use super::{
    form::{Entry, fields},
    part::Part,
};
use crate::{
    api::address,
    record::{Pool, PoolContent, PoolValue},
    text::{beginning, clean, plain},
};

/// Number of contents of a value in a row.
const CONTENTS: usize = 5;

/// The form of a value, which is a new one or of the pool.
pub(super) fn form(path: &str, pool: &Pool, entry: &Entry) -> Markup {
    let id = entry.value.as_deref().unwrap_or_default();
    html! {
        form method="post" action=(format!("{path}/values")) {
            (entry.version.fields(&pool.data_version, "pool"))
            @if entry.version.is_stale(&pool.data_version) { (present(pool, id)) }
            input type="hidden" name="value" value=(clean(id));
            (fields(&entry.contents))
            @if id.is_empty() { button { "Add" } } @else {
                button { "Save" } " "
                button.quiet name="remove" value="yes" formnovalidate { "Remove" } " "
                a href=(path) { "Cancel" }
            }
        }
    }
}

/// The value as it is now, beside what was entered.
fn present(pool: &Pool, id: &str) -> Markup {
    let value = pool.values.iter().find(|value| value.id == id);
    html! {
        @if let Some(value) = value {
            p.small { "The value is now:" }
            (contents(value))
        }
    }
}

pub(super) fn row(path: &str, index: usize, value: &PoolValue, may_write: bool) -> Markup {
    let edited = Part::with(value);
    html! {
        li.row.past {
            span.mark {}
            div.what { (contents(value)) }
            span.marks {}
            @if may_write {
                a.time href=(format!("{}#value", address(path, &edited)))
                    aria-label=(format!("Change value {}", index + 1))
                { "Change" }
            }
        }
    }
}

/// The first contents of a value.
fn contents(value: &PoolValue) -> Markup {
    let rest = value.contents.len().saturating_sub(CONTENTS);
    html! {
        @for one in value.contents.iter().take(CONTENTS) { p { (content(one)) } }
        @if rest > 0 { p.small { "and " (rest) " more" } }
    }
}

fn content(PoolContent { name, content, is_secured }: &PoolContent) -> Markup {
    html! {
        @if name.is_empty() { span.dim { "all other variables" } } @else { code { bdi { (plain(name)) } } }
        " = "
        bdi { (plain(&beginning(content))) }
        @if *is_secured { " " span.badge.none { "Secret" } }
    }
}
