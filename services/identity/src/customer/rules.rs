//! Rules for customers.

use assay_proto::{
    Fault,
    identity::{Customer, CustomerInput},
};
use assay_records::Check;

/// Maximum length of a DNS label.
const LONGEST_LABEL: usize = 63;

/// Subdomains that are used by other services, or that users would mistake for Assay itself.
const RESERVED: [&str; 24] = [
    "admin",
    "api",
    "assay",
    "auth",
    "autoconfig",
    "autodiscover",
    "blog",
    "cdn",
    "docs",
    "ftp",
    "help",
    "imap",
    "localhost",
    "login",
    "mail",
    "mx",
    "ns",
    "ns1",
    "ns2",
    "pop",
    "smtp",
    "status",
    "support",
    "www",
];

/// Checks a new customer, and converts its subdomain to lower case.
pub(super) fn valid(input: CustomerInput) -> Result<CustomerInput, Fault> {
    check(with_defaults(input), None)
}

/// Fills in the defaults of a new customer, which is not archived.
pub(crate) fn with_defaults(input: CustomerInput) -> CustomerInput {
    CustomerInput {
        archived: false,
        currency: input.currency.or_else(|| Some("EUR".to_owned())),
        tax: input.tax.or(Some(0.0)),
        minimum_consumption_in_h: input.minimum_consumption_in_h.or(Some(0.0)),
        due_days: input.due_days.or(Some(30.0)),
        ..input
    }
}

/// Checks a changed customer, which may keep a reserved subdomain.
pub(super) fn valid_change(
    current: &Customer,
    input: CustomerInput,
) -> Result<CustomerInput, Fault> {
    check(input, Some(&current.subdomain))
}

fn check(input: CustomerInput, current: Option<&str>) -> Result<CustomerInput, Fault> {
    let subdomain = input.subdomain.to_ascii_lowercase();
    let mut check = Check::default();
    check.name_on_one_line("Name", &input.name);
    for (field, text) in [
        ("Appliances", &input.appliances),
        ("AccountNumber", &input.account_number),
        ("Address", &input.address),
        ("CostCenter", &input.cost_center),
        ("Discounts", &input.discounts),
        ("TechnicalName", &input.technical_name),
    ] {
        check.text(field, text.as_deref().unwrap_or_default());
    }
    invoicing(&mut check, &input);
    if !is_label(&subdomain) {
        check.refuse(
            "Subdomain",
            format!(
                "must have 1 to {LONGEST_LABEL} letters, digits or hyphens, and no hyphen at its \
                 start or end"
            ),
        );
    } else if RESERVED.contains(&subdomain.as_str()) && current != Some(&subdomain) {
        check.refuse("Subdomain", "is reserved; choose another one");
    }
    check.done()?;
    Ok(CustomerInput { subdomain, ..input })
}

/// Maximum number of decimals of a price, which statements compute with.
const PRICE_DECIMALS: usize = 4;

/// Checks the fields for invoices.
fn invoicing(check: &mut Check, input: &CustomerInput) {
    let numbers = [
        ("Tax", input.tax),
        ("MinimumConsumptionInH", input.minimum_consumption_in_h),
        ("DueDays", input.due_days),
    ];
    for (field, number) in numbers {
        match number {
            Some(number) => check.amount(field, number),
            None => check.refuse(field, "must not be null"),
        }
    }
    if let Some(price) = input.price_per_hour {
        check.amount("PricePerHour", price);
        let decimals = price.to_string().split_once('.').map_or(0, |(_, decimals)| decimals.len());
        if decimals > PRICE_DECIMALS {
            check.refuse("PricePerHour", format!("must have at most {PRICE_DECIMALS} decimals"));
        }
    }
    if input.tax.is_some_and(|tax| tax > 100.0) {
        check.refuse("Tax", "must be at most 100");
    }
    match &input.currency {
        Some(code) if code.len() == 3 && code.bytes().all(|b| b.is_ascii_uppercase()) => {}
        Some(_) => check.refuse("Currency", "must be an ISO 4217 code, such as EUR"),
        None => check.refuse("Currency", "must not be null"),
    }
}

/// Returns whether a text is a label of a host name (RFC 1123).
fn is_label(text: &str) -> bool {
    (1..=LONGEST_LABEL).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(subdomain: &str) -> CustomerInput {
        CustomerInput {
            name: "Acme".into(),
            subdomain: subdomain.into(),
            ..CustomerInput::default()
        }
    }

    #[test]
    fn a_subdomain_is_a_dns_label() {
        let longest = "x".repeat(63);
        for (good, kept) in
            [("acme", "acme"), ("Acme-2", "acme-2"), ("7", "7"), (&longest, &longest)]
        {
            assert_eq!(valid(input(good)).unwrap().subdomain, kept);
        }
        let long = "x".repeat(64);
        for wrong in ["", "-a", "a-", "a.b", "a_b", "a b", "münchen", "a\n", "a/", "www", &long] {
            assert!(valid(input(wrong)).is_err(), "{wrong:?} was accepted");
        }
    }

    #[test]
    fn an_existing_customer_may_keep_a_reserved_subdomain() {
        let current = Customer { subdomain: "docs".into(), ..Customer::default() };
        let known = |subdomain| with_defaults(input(subdomain));
        valid_change(&current, known("docs")).unwrap();
        assert!(valid_change(&current, known("www")).is_err());
    }
}
