//! Tests of exports of TestLink, in the form of version 1.9.20.

use crate::source::tests::{column, convert_all};

const SUITE: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuite id="" name="" >
<node_order><![CDATA[]]></node_order>
<details><![CDATA[]]></details>
<testsuite id="3" name="Checkout" >
<details><![CDATA[<p>Paying</p>]]></details>
<testcase internalid="40" name="Pay by card">
  <node_order><![CDATA[1000]]></node_order>
  <externalid><![CDATA[1]]></externalid>
  <version><![CDATA[1]]></version>
  <summary><![CDATA[<p>Pay with &quot;4242&quot;.</p>]]></summary>
  <preconditions><![CDATA[<p>A cart</p>]]></preconditions>
  <importance><![CDATA[3]]></importance>
  <active>1</active>
  <steps>
    <step><step_number>1</step_number><actions><![CDATA[<p>Open</p>]]></actions>
      <expectedresults><![CDATA[<p>The page</p>]]></expectedresults></step>
    <step><step_number>2</step_number><actions><![CDATA[Pay]]></actions><expectedresults/></step>
  </steps>
  <keywords><keyword name="smoke"><notes/></keyword></keywords>
  <custom_fields><custom_field><name><![CDATA[team]]></name><value><![CDATA[blue]]></value></custom_field></custom_fields>
</testcase>
<testcase internalid="41" name="Ship">
  <externalid><![CDATA[2]]></externalid><fullexternalid><![CDATA[SHOP-2]]></fullexternalid>
  <summary></summary><active>0</active>
</testcase>
</testsuite>
</testsuite>"#;

const RESULTS: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<results>
  <testplan name="Release 2"/>
  <build name="2.4.1"/>
  <testcase external_id="SHOP-1">
    <tester>ada</tester>
    <timestamp>2026-03-02 14:00:00</timestamp>
    <result>f</result>
    <notes>no bank</notes>
    <bug_id>SHOP-9</bug_id>
    <bug_id>SHOP-10</bug_id>
    <execution_duration>1.5</execution_duration>
  </testcase>
  <testcase id="41"><timestamp>2026-03-02 14:05:00</timestamp><result>b</result></testcase>
  <testcase external_id="SHOP-3"><result>n</result></testcase>
</results>"#;

#[test]
fn suites_become_test_cases_with_steps_and_results_a_run() {
    let converted = convert_all(&[("a run.xml", RESULTS), ("suite.xml", SUITE)]).unwrap();

    assert_eq!(column(&converted.cases, "Identifier"), ["TL-1", "SHOP-2"]);
    assert_eq!(column(&converted.cases, "Archived"), ["false", "true"]);
    assert_eq!(
        converted.cases[0]["Description"],
        "Pay with \"4242\".\n\nPreconditions: A cart\n\nSuite: Checkout\n\nImportance: High\n\n\
         Keywords: smoke\n\nteam: blue"
    );
    let steps = converted.cases[0]["TestPlans"][0]["AutomationSteps"].as_array().unwrap();
    assert_eq!((steps.len(), &steps[0]["TestInput"]), (2, &"Open".into()));
    assert_eq!(converted.sets["Checkout"], ["TL-1", "SHOP-2"]);
    let [run] = &converted.executions[..] else { panic!("several executions") };
    assert_eq!((&run["TestSetName"], &run["Build"]), (&"Release 2".into(), &"2.4.1".into()));
    assert_eq!(run["RequestTime"], "2026-03-02T14:00:00.000000Z");
    let results = &converted.results[0];
    assert_eq!(column(results, "Identifier"), ["TL-1", "SHOP-2"]);
    assert_eq!(column(results, "Result"), ["Failed", "Aborted"]);
    assert_eq!(results[0]["DurationInSec"], 90.0);
    assert_eq!(results[0]["Steps"][0]["ActualResult"], "no bank");
}

#[test]
fn a_broken_file_is_refused_with_its_line() {
    let broken = SUITE.replace("<steps>", "<stops>");
    let error = format!("{:#}", convert_all(&[("suite.xml", &broken)]).err().unwrap());
    assert!(error.contains("suite.xml, line 19"), "{error}");
}
