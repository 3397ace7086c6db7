//! Hours of execution, and statements.

use serde::Deserialize;

/// The hours of a month, project, test set and target group.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ExecutionTime {
    pub(crate) month: String,
    pub(crate) project_id: String,
    pub(crate) test_set_id: String,
    pub(crate) test_set_name: Option<String>,
    /// Empty if no engine ran the executions.
    pub(crate) target_group: String,
    pub(crate) executions: i64,
    pub(crate) instances: i64,
    pub(crate) duration_in_h: f64,
}

/// Amounts that a customer owes for a month. Without a price, there are none.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Statement {
    pub(crate) month: String,
    pub(crate) is_final: bool,
    pub(crate) customer_name: String,
    pub(crate) account_number: Option<String>,
    pub(crate) address: Option<String>,
    pub(crate) cost_center: Option<String>,
    pub(crate) currency: String,
    pub(crate) executions: i64,
    pub(crate) instances: i64,
    pub(crate) duration_in_h: f64,
    pub(crate) minimum_consumption_in_h: f64,
    pub(crate) charged_in_h: f64,
    pub(crate) price_per_hour: Option<f64>,
    pub(crate) amount: Option<f64>,
    pub(crate) discounts: Option<String>,
    pub(crate) discount_amount: Option<f64>,
    pub(crate) net_amount: Option<f64>,
    pub(crate) tax: f64,
    pub(crate) tax_amount: Option<f64>,
    pub(crate) total_amount: Option<f64>,
    pub(crate) issue_date: String,
    pub(crate) due_days: f64,
    pub(crate) due_date: String,
}
