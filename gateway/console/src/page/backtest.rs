//! Rules that are tried over past executions before they are saved, in the form that they are entered in.

use http::Method;
use maud::{Markup, html};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::paged::shown_of;
use crate::{api::Api, failure::Failure};

/// The button that tries the rules of a form. They become the query of the page, so that they stay in the form.
pub(super) fn button(page: &str) -> Markup {
    html! {
        button formmethod="get" formaction=(format!("{page}#replayed")) name="replay" value="true" {
            "Try it on the past"
        }
    }
}

/// Returns a number for the interface, which checks it as it was entered.
pub(super) fn number_of(entered: Option<&str>) -> Value {
    let number = entered.map(|text| {
        let text = text.trim();
        text.parse().map_or_else(|_| json!(text), Value::Number)
    });
    number.unwrap_or_default()
}

/// Replays rules over the executions of the last 90 days. Returns what they would have done, or the reason why
/// the rules are refused. `path` is that of the operation.
pub(super) async fn replay<T: DeserializeOwned>(
    api: &Api,
    path: &str,
    rules: &Value,
) -> Result<Result<T, String>, Failure> {
    match api.send(Method::POST, path, rules).await {
        Ok(replayed) => Ok(Ok(replayed)),
        Err(failure) => failure.of_input().map(Err),
    }
}

/// Results of rules over the past: how often, what is missing, and when. There are `all` of `noun`, of which
/// `rows` are the latest.
pub(super) fn answer(
    facts: &[Markup],
    hint: Option<&Markup>,
    (all, noun): (i64, &str),
    rows: impl ExactSizeIterator<Item = Markup>,
) -> Markup {
    let shown = rows.len();
    html! {
        section aria-labelledby="replayed" {
            h2 #replayed { "Over the last 90 days" }
            p.facts role="status" { @for fact in facts { span.fact { (fact) } } }
            @if let Some(hint) = hint { p.hint { (hint) } }
            ol.rows { @for row in rows { (row) } }
            (shown_of(shown, all, noun))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interface_checks_numbers_as_they_were_entered() {
        assert_eq!(number_of(Some(" 2.5 ")), json!(2.5));
        assert_eq!(number_of(Some("many")), json!("many"));
        assert_eq!(number_of(None), Value::Null);
    }
}
