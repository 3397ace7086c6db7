//! The arithmetic of statements. It is done in whole hundredths, so that no amount depends on how a
//! computer stores decimals.

use assay_proto::{
    Fault,
    identity::{Customer, GetStatementRequest, Statement},
};

use super::store::Term;

/// Maximum number of discounts.
const MOST_DISCOUNTS: usize = 20;

/// Returns the statement of a customer. Fails if its discounts are not percentages.
pub(super) fn statement(
    customer: Customer,
    used: &GetStatementRequest,
    term: Term,
) -> Result<Statement, Fault> {
    let hours = hundredths(used.duration_in_h);
    let minimum = hundredths(customer.minimum_consumption_in_h);
    let charged = hours.max(minimum);
    let bill = match customer.price_per_hour {
        Some(price) => {
            let discounts = discounts(customer.discounts.as_deref().unwrap_or_default())?;
            Some(Bill::of(charged, price, &discounts, customer.tax))
        }
        None => None,
    };
    let amount = |of: fn(&Bill) -> i128| bill.as_ref().map(|bill| decimal(of(bill)));
    Ok(Statement {
        month: used.month.clone(),
        is_final: term.is_over && !used.is_partial,
        customer_id: customer.id,
        customer_name: customer.name,
        account_number: customer.account_number,
        address: customer.address,
        cost_center: customer.cost_center,
        currency: customer.currency,
        executions: used.executions,
        instances: used.instances,
        duration_in_h: decimal(hours),
        minimum_consumption_in_h: decimal(minimum),
        charged_in_h: decimal(charged),
        price_per_hour: customer.price_per_hour,
        amount: amount(|bill| bill.amount),
        discounts: customer.discounts,
        discount_amount: amount(|bill| bill.amount - bill.net),
        net_amount: amount(|bill| bill.net),
        tax: customer.tax,
        tax_amount: amount(|bill| bill.tax),
        total_amount: amount(|bill| bill.net + bill.tax),
        issue_date: term.issue_date,
        due_days: customer.due_days,
        due_date: term.due_date,
    })
}

/// The amounts of a statement, in hundredths of the currency.
struct Bill {
    amount: i128,
    /// The rest that the discounts leave.
    net: i128,
    tax: i128,
}

impl Bill {
    /// Computes the amounts. Hours and discounts are in hundredths. Some rates of taxes have three decimals.
    fn of(charged: i128, price: f64, discounts: &[i128], tax: f64) -> Self {
        let price = scaled(price, 10_000.0);
        let amount = divided(charged.saturating_mul(price), 10_000);
        let net = discounts.iter().fold(amount, |left, discount| left - share(left, *discount));
        let tax = divided(net.saturating_mul(scaled(tax, 10_000.0)), 1_000_000);
        Self { amount, net, tax }
    }
}

/// Returns a percentage of an amount, both in hundredths.
fn share(amount: i128, percentage: i128) -> i128 {
    divided(amount.saturating_mul(percentage), 10_000)
}

/// Divides a number that is not negative, and rounds half up.
fn divided(number: i128, by: i128) -> i128 {
    number.saturating_add(by / 2) / by
}

fn hundredths(number: f64) -> i128 {
    scaled(number, 100.0)
}

/// Returns a decimal number as a whole number of parts. Numbers that are too large become the largest.
#[expect(clippy::cast_possible_truncation, reason = "saturates")]
fn scaled(number: f64, parts: f64) -> i128 {
    const LARGEST: f64 = 1e15;
    (number * parts).round().clamp(0.0, LARGEST) as i128
}

/// Returns hundredths as a decimal number.
#[expect(clippy::cast_precision_loss, reason = "amounts have fewer digits")]
fn decimal(hundredths: i128) -> f64 {
    hundredths as f64 / 100.0
}

/// Parses discounts: percentages separated by commas, in hundredths.
fn discounts(text: &str) -> Result<Vec<i128>, Fault> {
    let parts: Vec<_> = text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
    let parsed: Option<Vec<_>> = parts.iter().map(|part| percentage(part)).collect();
    parsed.filter(|discounts| discounts.len() <= MOST_DISCOUNTS).ok_or_else(|| {
        let reason = format!(
            "Discounts of the customer: must be up to {MOST_DISCOUNTS} percentages separated by commas, \
             such as \"10, 2.5\"; ask the operator to change them"
        );
        Fault::Refused { code: "invalid_discounts", reason }
    })
}

/// Parses a percentage of 0 to 100 with at most two decimals, in hundredths. It may end with `%`.
fn percentage(text: &str) -> Option<i128> {
    let text = text.strip_suffix('%').unwrap_or(text).trim_end();
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let fits = (1..=3).contains(&whole.len()) && (1..=2).contains(&fraction.len());
    if !fits || !are_digits(whole) || !are_digits(fraction) {
        return None;
    }
    let hundredths =
        whole.parse::<i128>().ok()? * 100 + format!("{fraction:0<2}").parse::<i128>().ok()?;
    (hundredths <= 10_000).then_some(hundredths)
}

#[cfg(test)]
mod tests;
