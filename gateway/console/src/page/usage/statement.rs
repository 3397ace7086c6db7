//! The statement of a month.

use axum::{extract::Query, response::Response};
use maud::{Markup, html};
use serde::Deserialize;

use super::month::Month;
use crate::{
    api::{Api, address},
    claims::Claims,
    failure::Failure,
    page::part::facts,
    record::{Permission, Statement},
    session::Session,
    text::{number, plain},
};

/// Path of the interface.
const STATEMENT: &str = "/api/management/customers/current/statement";

/// Reads the statement of a month, or why there is none, if the user may read it.
pub(super) async fn read(
    api: &Api,
    user: &Claims,
    month: Month,
) -> Result<Option<Result<Statement, String>>, Failure> {
    if !user.may(Permission::Invoicing) {
        return Ok(None);
    }
    match api.get(STATEMENT, &[("month", month.to_string())]).await {
        Ok(statement) => Ok(Some(Ok(statement))),
        Err(failure) => {
            let problem = failure.of_conflict().or_else(Failure::of_input)?;
            Ok(Some(Err(problem)))
        }
    }
}

#[derive(Deserialize)]
pub(super) struct OfMonth {
    month: String,
}

/// The statement, as the interface returns it.
pub(super) async fn download(
    Session { api, .. }: Session,
    Query(OfMonth { month }): Query<OfMonth>,
) -> Result<Response, Failure> {
    api.download(&address(STATEMENT, &[("month", month)])).await
}

pub(super) fn show(statement: &Result<Statement, String>, month: Month) -> Markup {
    html! {
        section aria-labelledby="statement" {
            h2 #statement { "Statement of " (month.label()) }
            @match statement {
                Ok(statement) => (figures(statement)),
                Err(problem) => p.alert role="alert" { (plain(problem)) },
            }
        }
    }
}

fn figures(statement: &Statement) -> Markup {
    let month = &statement.month;
    let of_customer = [
        Some(statement.customer_name.as_str()),
        statement.account_number.as_deref(),
        statement.address.as_deref(),
        statement.cost_center.as_deref(),
    ];
    html! {
        p.facts {
            (facts(of_customer))
            @if !statement.is_final { span.fact { "preliminary: the month is not over, or some of its executions are not counted yet" } }
        }
        @if statement.price_per_hour.is_none() {
            p.hint { "The customer has no price of an hour, so the statement has hours only." }
        }
        div.sums {
            table { tbody { @for (name, figure) in lines(statement) { tr {
                th scope="row" { (plain(&name)) }
                td.num { (plain(&figure)) }
            } } } }
        }
        p {
            a href=(address("/usage/statement", &[("month", month)])) download=(format!("statement-{month}.json")) {
                "Download the statement as JSON"
            }
        }
    }
}

/// Returns the lines of a statement, without those that need a price if there is none.
fn lines(statement: &Statement) -> Vec<(String, String)> {
    let hours = |hours: f64| format!("{hours:.2} h");
    let money = |amount: Option<f64>| Some(format!("{:.2} {}", amount?, statement.currency));
    let less = |amount: Option<f64>| Some(format!("\u{2212}{}", money(Some(amount?))?));
    let discounts = match statement.discounts.as_deref() {
        None | Some("") => "Discounts".to_owned(),
        // Each may have its own sign.
        Some(discounts) => format!("Discounts ({} %)", discounts.replace('%', "").trim_end()),
    };
    let has_price = statement.price_per_hour.is_some();
    let if_priced = |text: String| has_price.then_some(text);
    let due = format!("{} ({} days)", statement.due_date, statement.due_days);
    let lines = [
        ("Executions".to_owned(), Some(number(statement.executions))),
        ("Instances".to_owned(), Some(number(statement.instances))),
        ("Hours of execution".to_owned(), Some(hours(statement.duration_in_h))),
        ("At least".to_owned(), Some(hours(statement.minimum_consumption_in_h))),
        ("Charged".to_owned(), Some(hours(statement.charged_in_h))),
        ("Price of an hour".to_owned(), money(statement.price_per_hour)),
        ("Amount".to_owned(), money(statement.amount)),
        (discounts, less(statement.discount_amount)),
        ("Net amount".to_owned(), money(statement.net_amount)),
        (format!("Tax ({} %)", statement.tax), money(statement.tax_amount)),
        ("Total".to_owned(), money(statement.total_amount)),
        ("Issued".to_owned(), if_priced(statement.issue_date.clone())),
        ("Due".to_owned(), if_priced(due)),
    ];
    lines.into_iter().filter_map(|(name, figure)| Some((name, figure?))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn statement(price: Option<f64>) -> Statement {
        let of = |amount: f64| price.map_or(Value::Null, |_| json!(amount));
        let statement = json!({
            "Month": "2026-11", "IsFinal": true, "CustomerName": "Example Shops",
            "AccountNumber": null, "Address": null, "CostCenter": null, "Currency": "EUR",
            "Executions": 1200, "Instances": 3400, "DurationInH": 107.5, "MinimumConsumptionInH": 100,
            "ChargedInH": 107.5, "PricePerHour": price, "Amount": of(451.5), "Discounts": "10, 2.5",
            "DiscountAmount": of(55.31), "NetAmount": of(396.19), "Tax": 19, "TaxAmount": of(75.28),
            "TotalAmount": of(471.47), "IssueDate": "2026-12-01", "DueDays": 14,
            "DueDate": "2026-12-15",
        });
        serde_json::from_value(statement).unwrap()
    }

    #[test]
    fn a_statement_has_amounts_if_there_is_a_price() {
        let lines_of = |price| lines(&statement(price));
        let priced = lines_of(Some(4.2));
        for (name, figure) in [
            ("Executions", "1,200"),
            ("Charged", "107.50 h"),
            ("Discounts (10, 2.5 %)", "−55.31 EUR"),
            ("Tax (19 %)", "75.28 EUR"),
            ("Total", "471.47 EUR"),
            ("Due", "2026-12-15 (14 days)"),
        ] {
            assert!(priced.contains(&(name.to_owned(), figure.to_owned())), "{name}: {priced:?}");
        }
        let signed = Statement { discounts: Some("10%, 2.5 %".to_owned()), ..statement(Some(4.2)) };
        assert!(lines(&signed).iter().any(|(name, _)| name == "Discounts (10, 2.5 %)"));
        let unpriced = lines_of(None);
        assert_eq!(unpriced.last().map(|(name, _)| name.as_str()), Some("Charged"));
    }
}
