//! Statements that were computed by hand.

use super::*;

fn customer(price: f64, minimum: f64, discounts: &str, tax: f64) -> Customer {
    Customer {
        price_per_hour: Some(price),
        minimum_consumption_in_h: minimum,
        discounts: Some(discounts.to_owned()).filter(|text| !text.is_empty()),
        tax,
        ..Customer::default()
    }
}

fn of(customer: Customer, hours: f64) -> Statement {
    let used = GetStatementRequest { duration_in_h: hours, ..GetStatementRequest::default() };
    statement(customer, &used, Term::default()).unwrap()
}

/// Returns the charged hours, the amount, the discounts, the net amount, the tax and the total.
fn figures(statement: &Statement) -> [f64; 6] {
    [
        statement.charged_in_h,
        statement.amount.unwrap(),
        statement.discount_amount.unwrap(),
        statement.net_amount.unwrap(),
        statement.tax_amount.unwrap(),
        statement.total_amount.unwrap(),
    ]
}

#[track_caller]
fn assert_figures(statement: &Statement, expected: [f64; 6]) {
    let near = |(one, other): (f64, f64)| (one - other).abs() < 1e-9;
    let found = figures(statement);
    assert!(found.into_iter().zip(expected).all(near), "{found:?} instead of {expected:?}");
}

#[test]
fn hours_are_charged_at_the_price_of_the_customer() {
    // 10 h at 4.20.
    let plain = of(customer(4.2, 0.0, "", 0.0), 10.0);
    assert_figures(&plain, [10.0, 42.0, 0.0, 42.0, 0.0, 42.0]);
}

#[test]
fn at_least_the_minimum_consumption_is_charged() {
    let few = of(customer(4.2, 100.0, "", 19.0), 12.5);
    // 100 h at 4.20 is 420.00, and 19 % of it 79.80.
    assert_figures(&few, [100.0, 420.0, 0.0, 420.0, 79.8, 499.8]);
    assert!((few.duration_in_h - 12.5).abs() < f64::EPSILON);
    let many = of(customer(4.2, 100.0, "", 19.0), 100.01);
    // 100.01 h at 4.20 is 420.042, and 19 % of 420.04 is 79.8076.
    assert_figures(&many, [100.01, 420.04, 0.0, 420.04, 79.81, 499.85]);
}

#[test]
fn a_discount_is_of_what_those_before_it_have_left() {
    // 107.5 h at 4.20 is 451.50. 10 % of it is 45.15, which leaves 406.35; 2.5 % of that is 10.15875.
    // 19 % of 396.19 is 75.2761.
    let discounted = of(customer(4.2, 100.0, "10, 2.5", 19.0), 107.5);
    assert_figures(&discounted, [107.5, 451.5, 55.31, 396.19, 75.28, 471.47]);
    let free = of(customer(4.2, 0.0, "100%", 19.0), 1.0);
    assert_figures(&free, [1.0, 4.2, 4.2, 0.0, 0.0, 0.0]);
}

#[test]
fn a_tax_may_have_three_decimals() {
    // 8.875 % of 1,000.00 is 88.75.
    let taxed = of(customer(1.0, 0.0, "", 8.875), 1000.0);
    assert_figures(&taxed, [1000.0, 1000.0, 0.0, 1000.0, 88.75, 1088.75]);
}

#[test]
fn hundredths_are_rounded_half_up() {
    // 0.005 h is 0.01 h; 1 h at 0.0050 is 0.005, so 0.01; 50 % of 0.01 is 0.005, so 0.01.
    assert_figures(&of(customer(1.0, 0.0, "", 0.0), 0.005), [0.01, 0.01, 0.0, 0.01, 0.0, 0.01]);
    let half = of(customer(0.005, 0.0, "50", 0.0), 1.0);
    assert_figures(&half, [1.0, 0.01, 0.01, 0.0, 0.0, 0.0]);
    // 2.05 h at 1.10 is 2.255, which binary numbers store as a little less.
    assert_figures(&of(customer(1.1, 0.0, "", 0.0), 2.05), [2.05, 2.26, 0.0, 2.26, 0.0, 2.26]);
}

#[test]
fn a_statement_without_a_price_has_hours_only() {
    let customer = Customer {
        discounts: Some("as agreed".into()),
        minimum_consumption_in_h: 5.0,
        ..Customer::default()
    };
    let hours = of(customer, 1.0);
    assert!((hours.charged_in_h - 5.0).abs() < f64::EPSILON);
    assert_eq!((hours.amount, hours.total_amount), (None, None));
    assert_eq!(hours.discounts.as_deref(), Some("as agreed"));
}

#[test]
fn discounts_are_percentages() {
    for (text, expected) in
        [("", vec![]), (" 10 , 2.5 ", vec![1000, 250]), ("3%,", vec![300]), ("0.05", vec![5])]
    {
        assert_eq!(discounts(text).unwrap(), expected, "{text:?}");
    }
    let many = ["1"; 21].join(",");
    for wrong in ["as agreed", "-1", "101", "100.01", "1.234", "1e1", ".5", "5.", "10;5", &many] {
        assert!(discounts(wrong).is_err(), "{wrong:?} was accepted");
    }
}

#[test]
fn figures_that_are_too_large_do_not_fail() {
    let huge = of(customer(f64::MAX, f64::MAX, "10", 100.0), f64::MAX);
    assert!(figures(&huge).iter().all(|figure| figure.is_finite()));
}
