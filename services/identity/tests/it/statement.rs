//! Monthly statements, by the figures of the customer.

use anyhow::Result;
use assay_auth::Caller;
use assay_proto::identity::{CustomerInput, GetStatementRequest, Statement, UpdateCustomerRequest};
use tonic::{Code, Status};

use crate::world::{ADMIN, Identity, reason};

async fn statement(
    identity: &Identity,
    caller: &Caller,
    month: &str,
    hours: f64,
) -> Result<Statement, Status> {
    let request = GetStatementRequest {
        month: month.to_owned(),
        executions: 2,
        instances: 3,
        duration_in_h: hours,
        is_partial: false,
    };
    statement_of(identity, caller, request).await
}

async fn statement_of(
    identity: &Identity,
    caller: &Caller,
    request: GetStatementRequest,
) -> Result<Statement, Status> {
    Ok(identity.statements().get_statement(caller.call(request)).await?.into_inner())
}

/// Changes figures of the customer of a caller, as the operator does.
async fn change(
    identity: &Identity,
    caller: &Caller,
    changes: CustomerInput,
    fields: &[&str],
) -> Result<()> {
    let request = UpdateCustomerRequest {
        id: caller.customer.to_string(),
        changes: Some(changes),
        fields: fields.iter().map(ToString::to_string).collect(),
        ..UpdateCustomerRequest::default()
    };
    let operator = identity.caller_of(ADMIN).await?;
    identity.customers().update_customer(operator.call(request)).await?;
    Ok(())
}

#[tokio::test]
async fn a_statement_has_the_figures_of_the_customer() -> Result<()> {
    let identity = Identity::new().await?;
    let caller = identity.visitor("shops").await?;
    let hours = statement(&identity, &caller, "2026-02", 1.5).await?;
    assert_eq!((hours.price_per_hour, hours.amount, hours.total_amount), (None, None, None));
    assert_eq!((hours.currency.as_str(), hours.customer_name.as_str()), ("EUR", "Customer shops"));

    let figures = CustomerInput {
        currency: Some("CHF".to_owned()),
        tax: Some(19.0),
        discounts: Some("10, 2.5".to_owned()),
        minimum_consumption_in_h: Some(100.0),
        due_days: Some(14.0),
        cost_center: Some("QA-7".to_owned()),
        price_per_hour: Some(4.2),
        ..CustomerInput::default()
    };
    let fields = [
        "Currency",
        "Tax",
        "Discounts",
        "MinimumConsumptionInH",
        "DueDays",
        "CostCenter",
        "PricePerHour",
    ];
    change(&identity, &caller, figures, &fields).await?;

    let statement = statement(&identity, &caller, "2024-01", 107.5).await?;
    let money = [
        statement.amount,
        statement.discount_amount,
        statement.net_amount,
        statement.tax_amount,
        statement.total_amount,
    ];
    assert_eq!(money, [451.5, 55.31, 396.19, 75.28, 471.47].map(Some));
    assert_eq!((statement.executions, statement.instances), (2, 3));
    assert_eq!(
        (statement.currency.as_str(), statement.cost_center.as_deref()),
        ("CHF", Some("QA-7"))
    );
    let days = (statement.issue_date.as_str(), statement.due_date.as_str());
    assert_eq!(days, ("2024-02-01", "2024-02-15"));
    assert!(statement.is_final);
    Ok(())
}

#[tokio::test]
async fn a_month_that_is_not_over_has_no_final_statement() -> Result<()> {
    let identity = Identity::new().await?;
    let caller = identity.visitor("shops").await?;
    let month: String = sqlx::query_scalar("select to_char(now() at time zone 'utc', 'YYYY-MM')")
        .fetch_one(&identity.db)
        .await?;
    assert!(!statement(&identity, &caller, &month, 0.0).await?.is_final);
    // Nor does one of whose executions some are not counted yet.
    for (is_partial, is_final) in [(true, false), (false, true)] {
        let month = "2024-01".to_owned();
        let request = GetStatementRequest { month, is_partial, ..GetStatementRequest::default() };
        assert_eq!(statement_of(&identity, &caller, request).await?.is_final, is_final);
    }
    for wrong in ["", "2026", "2026-13", "2026-11-01"] {
        let refused = statement(&identity, &caller, wrong, 0.0).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{wrong:?}");
    }
    Ok(())
}

#[tokio::test]
async fn discounts_that_are_not_percentages_are_refused_once_they_matter() -> Result<()> {
    let identity = Identity::new().await?;
    let caller = identity.visitor("shops").await?;
    let agreed = CustomerInput { discounts: Some("as agreed".to_owned()), ..Default::default() };
    change(&identity, &caller, agreed, &["Discounts"]).await?;
    statement(&identity, &caller, "2026-01", 1.0).await?;
    let priced = CustomerInput { price_per_hour: Some(1.0), ..Default::default() };
    change(&identity, &caller, priced, &["PricePerHour"]).await?;
    let refused = statement(&identity, &caller, "2026-01", 1.0).await.unwrap_err();
    assert_eq!(reason(&refused), "invalid_discounts");
    Ok(())
}

#[tokio::test]
async fn a_statement_needs_the_permission_for_invoices() -> Result<()> {
    let identity = Identity::new().await?;
    let own = identity.customer("own").await?;
    let account = identity.account("grace@example.com").await?;
    identity.membership(own, account, "Login, Read, ExecutionTimes").await?;
    let caller = identity.caller_of("grace@example.com").await?;
    let refused = statement(&identity, &caller, "2026-01", 1.0).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    Ok(())
}
