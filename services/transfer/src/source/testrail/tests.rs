//! Tests of exports of TestRail, in the form of TestRail 7 and later.

use serde_json::json;

use crate::source::tests::{column, convert_all};

const SUITE: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<suite>
  <id>S196</id>
  <name>Master</name>
  <description></description>
  <sections>
    <section>
      <name>Checkout</name>
      <description>Paying</description>
      <cases>
        <case>
          <id>C101</id>
          <title>Pay by card</title>
          <template>Test Case (Steps)</template>
          <type>Functional</type>
          <priority>High</priority>
          <references>SHOP-1</references>
          <custom>
            <automation_type><id>1</id><value> Playwright</value></automation_type>
            <preconds>The cart has a book</preconds>
            <steps_separated>
              <step><index>1</index><content>Pay &amp; wait</content><expected>Order 4711</expected></step>
              <step><index>2</index><content>Log out</content><additional_info>by the menu</additional_info></step>
            </steps_separated>
          </custom>
        </case>
      </cases>
      <sections>
        <section>
          <name>Vouchers</name>
          <cases>
            <case>
              <id>C102</id>
              <title>Redeem</title>
              <custom>
                <automation_id>shop.Vouchers.redeem</automation_id>
                <steps>Enter the voucher</steps>
                <expected>The price is lower</expected>
              </custom>
            </case>
          </cases>
        </section>
      </sections>
    </section>
  </sections>
</suite>
"#;

const RUN: &str = "\
\u{feff}\"ID\",\"Title\",\"Case ID\",\"Status\",\"Tested On\",\"Elapsed\",\"Comment\",\"Defects\",\"Version\",\"Run\",\"Run ID\"\r\n\
\"T1\",\"Pay by card\",\"C101\",\"Failed\",\"2026-03-02 09:30:04\",\"1m 5s\",\"The bank
said no\",\"SHOP-9\",\"2.4.1\",\"Nightly\",\"R7\"\r\n\
\"T2\",\"Redeem\",\"C102\",\"Passed\",\"2026-03-02 09:31:00\",\"\",\"\",\"\",\"2.4.1\",\"Nightly\",\"R7\"\r\n\
\"T3\",\"Ship\",\"C103\",\"Untested\",\"\",\"\",\"\",\"\",\"\",\"Nightly\",\"R7\"\r\n\
\"T4\",\"Pack\",\"C104\",\"Won't do\",\"2026-03-01 09:00\",\"\",\"\",\"\",\"\",\"Smoke\",\"R6\"\r\n";

#[test]
fn test_cases_keep_their_sections_steps_and_fields() {
    let converted = convert_all(&[("suite.xml", SUITE)]).unwrap();

    assert_eq!(column(&converted.cases, "Identifier"), ["C101", "shop.Vouchers.redeem"]);
    assert_eq!(column(&converted.cases, "Name"), ["Pay by card", "Redeem"]);
    assert_eq!(
        converted.cases[0]["Description"],
        "Preconditions: The cart has a book\n\nSection: Checkout\n\nType: Functional\n\nPriority: High\n\n\
         References: SHOP-1\n\nautomation_type: Playwright"
    );
    assert_eq!(
        converted.cases[0]["TestPlans"][0]["AutomationSteps"],
        json!([
            {"StepNr": 1, "TestInput": "Pay & wait", "ExpectedResult": "Order 4711", "Comment": ""},
            {"StepNr": 2, "TestInput": "Log out", "ExpectedResult": "", "Comment": "by the menu"},
        ])
    );
    let description = converted.cases[1]["Description"].as_str().unwrap();
    assert!(description.contains("Section: Checkout / Vouchers"), "{description}");
    assert_eq!(
        converted.cases[1]["TestPlans"][0]["AutomationSteps"][0]["TestInput"],
        "Enter the voucher"
    );
    assert_eq!(converted.sets["Master"], ["C101", "shop.Vouchers.redeem"]);
}

#[test]
fn runs_become_executions_in_the_order_of_their_times() {
    // The run is read after the test cases, whatever the order of the files.
    let converted = convert_all(&[("a-run.csv", RUN), ("suite.xml", SUITE)]).unwrap();

    assert_eq!(column(&converted.executions, "Key"), ["testrail-R6", "testrail-R7"]);
    assert_eq!(column(&converted.executions, "TestSetName"), ["Smoke", "Nightly"]);
    let nightly = &converted.executions[1];
    assert_eq!(nightly["RequestTime"], "2026-03-02T09:28:59.000000Z");
    assert_eq!(nightly["CompletionDateTime"], "2026-03-02T09:31:00.000000Z");
    assert_eq!(nightly["Build"], "2.4.1");
    let results = &converted.results[1];
    assert_eq!(column(results, "Identifier"), ["C101", "shop.Vouchers.redeem"]);
    assert_eq!(column(results, "Result"), ["Failed", "Passed"]);
    assert_eq!(results[0]["DurationInSec"], 65.0);
    assert_eq!(results[0]["Steps"][0]["ActualResult"], "The bank\nsaid no");
    assert_eq!(column(&converted.results[0], "Result"), ["Canceled"]);
    assert_eq!(converted.results[0][0]["Steps"][0]["ActualResult"], "Status: Won't do");
}

#[test]
fn runs_without_results_are_left_out_and_times_in_the_future_become_the_present() {
    let run = "Case ID,Title,Status,Tested On,Run\nC1,Pay,Untested,,Later\nC1,Pay,Passed,2999-01-01 09:00,Now\n";
    let converted = convert_all(&[("run.csv", run)]).unwrap();

    assert_eq!(column(&converted.executions, "TestSetName"), ["Now"]);
    assert_eq!(converted.sets.keys().collect::<Vec<_>>(), ["Now"]);
    for field in ["RequestTime", "CompletionDateTime"] {
        let times = column(&converted.executions, field);
        assert!(times[0].as_str() < "2999" && times[0].as_str() > "2026", "{field}: {times:?}");
    }
}

#[test]
fn steps_of_a_case_may_have_rows_of_their_own() {
    let cases = "ID,Title,Section Hierarchy,Steps (Step),Steps (Expected Result)\n\
                 C1,Pay,Shop > Checkout,Enter the card,Accepted\nC1,,,Confirm,Order\n,,,Log out,\nC2,Ship,Shop,,\n";
    let converted = convert_all(&[("cases.csv", cases)]).unwrap();

    assert_eq!(column(&converted.cases, "Identifier"), ["C1", "C2"]);
    let steps = converted.cases[0]["TestPlans"][0]["AutomationSteps"].as_array().unwrap();
    let inputs: Vec<_> = steps.iter().map(|step| step["TestInput"].as_str().unwrap()).collect();
    assert_eq!(inputs, ["Enter the card", "Confirm", "Log out"]);
    assert_eq!(converted.cases[0]["Description"], "Section: Shop / Checkout");
}

#[test]
fn broken_files_are_refused_with_their_line() {
    for (name, text, expected) in [
        ("suite.xml", "<suite>\n<sections>\n<section></sections></suite>", "suite.xml, line 3"),
        ("run.csv", "Case ID,Title,Status\nC1,Pay,Passed\nC2,Ship\n", "line: 3"),
        (
            "run.csv",
            "Case ID,Title,Status\n,Pay,Passed\n",
            "run.csv, line 2: the row has no Case ID",
        ),
    ] {
        let error = format!("{:#}", convert_all(&[(name, text)]).err().unwrap());
        assert!(error.contains(expected), "{error}");
    }
}
