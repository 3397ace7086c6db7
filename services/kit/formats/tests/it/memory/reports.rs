//! Reports of each streaming format, of any size.

use super::Report;

/// Text of a stack trace or output. Most tests have a short one, and some a long one.
fn text(number: usize) -> String {
    let lines = if number.is_multiple_of(100) { 20_000 } else { 10 };
    "    at com.acme.shop.Cart.pay(Cart.java:12)|".repeat(lines)
}

/// Reports in XML.
pub(super) fn xml() -> Vec<Report> {
    vec![
        Report {
            name: "JUnit",
            start: "<testsuites><testsuite name='shop'>",
            test: |number| {
                format!(
                    "<testcase classname='c' name='{number}'><failure message='m'>{}</failure>\
                     <system-out><![CDATA[{}]]></system-out></testcase>\n",
                    text(number),
                    text(number)
                )
            },
            end: "</testsuite></testsuites>",
        },
        Report {
            name: "Robot",
            start: "<robot><suite name='shop'>",
            test: |number| {
                let keyword =
                    "<kw name='Log'><msg level='INFO'>x</msg><status status='PASS'/></kw>";
                format!(
                    "<test name='{number}'>{}<msg>{}</msg><status status='FAIL'>{}</status></test>",
                    keyword.repeat(if number.is_multiple_of(50) { 10_000 } else { 5 }),
                    text(number),
                    text(number)
                )
            },
            end: "</suite></robot>",
        },
        Report {
            name: "NUnit",
            start: "<test-run><test-suite name='shop'>",
            test: |number| {
                format!(
                    "<test-case name='{number}' classname='c' result='Failed'><failure><message>m\
                     </message><stack-trace>{}</stack-trace></failure><output>{}</output></test-case>",
                    text(number),
                    text(number)
                )
            },
            end: "</test-suite></test-run>",
        },
        Report {
            name: "NUnit 2",
            start: "<test-results><test-suite type='TestFixture' name='shop'><results>",
            test: |number| {
                format!(
                    "<test-case name='shop.{number}' result='Failure'><failure><message>m</message>\
                     <stack-trace>{}</stack-trace></failure></test-case>",
                    text(number)
                )
            },
            end: "</results></test-suite></test-results>",
        },
        Report {
            name: "xUnit",
            start: "<assemblies><assembly name='a'><collection>",
            test: |number| {
                format!(
                    "<test type='c' name='c.{number}' result='Fail'><failure><message>m</message>\
                     <stack-trace>{}</stack-trace></failure></test>",
                    text(number)
                )
            },
            end: "</collection></assembly></assemblies>",
        },
    ]
}

/// Further reports in XML, of .NET and Java.
pub(super) fn more_xml() -> Vec<Report> {
    vec![
        Report {
            name: "TRX",
            start: "<TestRun><TestDefinitions><UnitTest id='1'><TestMethod className='c'/></UnitTest>\
                    </TestDefinitions><Results>",
            test: |number| {
                format!(
                    "<UnitTestResult testId='1' testName='c.{number}' outcome='Failed'><Output>\
                     <ErrorInfo><Message>m</Message><StackTrace>{}</StackTrace></ErrorInfo></Output>\
                     </UnitTestResult>",
                    text(number)
                )
            },
            end: "</Results></TestRun>",
        },
        Report {
            name: "Open Test Reporting events",
            start: "<events xmlns='https://schemas.opentest4j.org/reporting/events/0.2.0'>",
            test: |number| {
                format!(
                    "<started id='{number}' name='{number}'/><finished id='{number}'><result \
                     status='FAILED'><throwable>{}</throwable></result></finished>",
                    text(number)
                )
            },
            end: "</events>",
        },
        Report {
            name: "Open Test Reporting hierarchy",
            start: "<execution xmlns='https://schemas.opentest4j.org/reporting/hierarchy/0.2.0'>\
                    <root name='r'><result status='SUCCESSFUL'/>",
            test: |number| {
                format!(
                    "<child name='{number}'><result status='FAILED'><throwable>{}</throwable></result>\
                     </child>",
                    text(number)
                )
            },
            end: "</root></execution>",
        },
        Report {
            name: "TestNG",
            start: "<testng-results><suite name='s'><test name='t'><class name='c'>",
            test: |number| {
                format!(
                    "<test-method name='{number}' status='FAIL'><exception><full-stacktrace>{}\
                     </full-stacktrace></exception></test-method>",
                    text(number)
                )
            },
            end: "</class></test></suite></testng-results>",
        },
    ]
}

/// Reports that are one JSON document.
pub(super) fn json() -> Vec<Report> {
    vec![
        Report {
            name: "CTRF",
            start: "{\"reportFormat\": \"CTRF\", \"results\": {\"tool\": {\"name\": \"t\"}, \"tests\": [",
            test: |number| {
                let comma = if number == 1 { "" } else { "," };
                format!(
                    "{comma}{{\"name\": \"{number}\", \"status\": \"failed\", \"trace\": \"{}\",\
                     \"stdout\": [\"{}\"]}}",
                    text(number),
                    text(number)
                )
            },
            end: "]}}",
        },
        Report {
            name: "Playwright",
            start: "{\"config\": {\"rootDir\": \"/\"}, \"suites\": [{\"title\": \"a\", \"specs\": [",
            test: |number| {
                let comma = if number == 1 { "" } else { "," };
                format!(
                    "{comma}{{\"title\": \"{number}\", \"tests\": [{{\"results\": [{{\"status\": \
                     \"failed\", \"error\": {{\"stack\": \"{}\"}}, \"attachments\": [{{\"name\": \"a\",\
                     \"body\": \"{}\"}}]}}]}}]}}",
                    text(number),
                    "AAAA".repeat(if number.is_multiple_of(20) { 500_000 } else { 100 })
                )
            },
            end: "]}]}",
        },
        Report {
            name: "Robot JSON",
            start: "{\"generator\": \"Rebot\", \"rpa\": false, \"suite\": {\"name\": \"s\", \"tests\": [",
            test: |number| {
                let comma = if number == 1 { "" } else { "," };
                let keyword = "{\"name\": \"Log\", \"body\": [{\"type\": \"MESSAGE\", \"message\": \
                               \"x\"}], \"status\": \"PASS\"},";
                format!(
                    "{comma}{{\"name\": \"{number}\", \"status\": \"FAIL\", \"message\": \"{}\", \
                     \"body\": [{}{{\"name\": \"Fail\"}}]}}",
                    text(number),
                    keyword.repeat(if number.is_multiple_of(50) { 10_000 } else { 5 })
                )
            },
            end: "]}}",
        },
        Report {
            name: "Cucumber JSON",
            start: "[",
            test: |number| {
                let comma = if number == 1 { "" } else { "," };
                format!(
                    "{comma}{{\"elements\": [{{\"type\": \"scenario\", \"name\": \"s\", \"steps\": \
                     [{{\"name\": \"a\", \"result\": {{\"status\": \"failed\", \"error_message\": \
                     \"{}\"}}}}]}}], \"name\": \"{number}\"}}",
                    text(number)
                )
            },
            end: "]",
        },
    ]
}

/// Further reports that are one JSON document, of JavaScript tools and pytest.
pub(super) fn more_json() -> Vec<Report> {
    vec![
        Report {
            name: "Jest",
            start: "{\"numTotalTestSuites\": 1, \"numTotalTests\": 1, \"wasInterrupted\": false, \
                    \"testResults\": [{\"assertionResults\": [",
            test: |number| {
                let comma = if number == 1 { "" } else { "," };
                format!(
                    "{comma}{{\"title\": \"{number}\", \"status\": \"failed\", \"failureMessages\": [\"{}\"]}}",
                    text(number)
                )
            },
            end: "], \"status\": \"failed\"}]}",
        },
        Report {
            name: "Vitest",
            start: "{\"numTotalTestSuites\": 1, \"numTotalTests\": 1, \"testResults\": [",
            test: |number| {
                let comma = if number == 1 { "" } else { "," };
                format!(
                    "{comma}{{\"assertionResults\": [{{\"title\": \"{number}\", \"status\": \"failed\", \
                     \"failureMessages\": [\"{}\"]}}], \"name\": \"a\", \"status\": \"failed\"}}",
                    text(number)
                )
            },
            end: "]}",
        },
        Report {
            name: "Mocha",
            start: "{\"stats\": {\"suites\": 1}, \"failures\": [",
            test: |number| {
                let comma = if number == 1 { "" } else { "," };
                let text = text(number);
                format!(
                    "{comma}{{\"fullTitle\": \"{number}\", \"err\": {{\"stack\": \"{text}\"}}}}"
                )
            },
            end: "]}",
        },
        Report {
            name: "Mochawesome",
            start: "{\"stats\": {}, \"results\": [{\"suites\": [{\"tests\": [",
            test: |number| {
                let comma = if number == 1 { "" } else { "," };
                format!(
                    "{comma}{{\"fullTitle\": \"{number}\", \"state\": \"failed\", \"err\": {{\"estack\": \"{}\"}}}}",
                    text(number)
                )
            },
            end: "]}]}]}",
        },
        Report {
            name: "pytest",
            start: "{\"created\": 1, \"exitcode\": 1, \"tests\": [",
            test: |number| {
                let comma = if number == 1 { "" } else { "," };
                format!(
                    "{comma}{{\"nodeid\": \"a.py::{number}\", \"outcome\": \"failed\", \"call\": {{\"outcome\": \
                     \"failed\", \"longrepr\": \"{}\", \"stdout\": \"{}\"}}}}",
                    text(number),
                    text(number)
                )
            },
            end: "]}",
        },
    ]
}

/// Reports with lines.
pub(super) fn lines() -> Vec<Report> {
    vec![
        Report {
            name: "Cucumber messages",
            start: "{\"meta\": {\"protocolVersion\": \"32\"}}\n",
            test: |number| {
                format!(
                    "{{\"pickle\": {{\"id\": \"p{number}\", \"name\": \"s\", \"steps\": []}}}}\n\
                     {{\"testCase\": {{\"id\": \"c{number}\", \"pickleId\": \"p{number}\"}}}}\n\
                     {{\"testCaseStarted\": {{\"id\": \"s{number}\", \"testCaseId\": \"c{number}\"}}}}\n\
                     {{\"attachment\": {{\"testCaseStartedId\": \"s{number}\", \"body\": \"{}\"}}}}\n\
                     {{\"testCaseFinished\": {{\"testCaseStartedId\": \"s{number}\"}}}}\n",
                    text(number)
                )
            },
            end: "{\"testRunFinished\": {\"success\": true}}\n",
        },
        Report {
            name: "go test",
            start: "",
            test: |number| {
                let event = |action: &str, more: &str| {
                    format!(
                        "{{\"Action\": \"{action}\", \"Package\": \"p\", \"Test\": \"T{number}\"{more}}}\n"
                    )
                };
                let output = event("output", ", \"Output\": \"a line of the output\\n\"");
                let lines = if number.is_multiple_of(100) { 10_000 } else { 10 };
                event("run", "") + &output.repeat(lines) + &event("fail", ", \"Elapsed\": 0.1")
            },
            end: "{\"Action\": \"fail\", \"Package\": \"p\"}\n",
        },
        Report {
            name: "TAP",
            start: "",
            // Each test is a file with a plan of its own.
            test: |number| {
                format!(
                    "TAP version 14\n1..1\nnot ok {number} - t{number}\n  ---\n  {}\n  ...\n",
                    text(number).replace('|', "\n  ")
                )
            },
            end: "",
        },
    ]
}
