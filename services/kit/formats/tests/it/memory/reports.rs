//! Reports of each streaming format, of any size.

use super::Report;

/// Text of a stack trace or output. Most tests have a short one, and some a long one.
pub(super) fn text(number: usize) -> String {
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
                    "TAP version 14\n1..1\nnot ok 1 - t{number}\n  ---\n  {}\n  ...\n",
                    text(number).replace('|', "\n  ")
                )
            },
            end: "",
        },
    ]
}

/// A blob report of Playwright.
pub(super) fn blob() -> Report {
    Report {
        name: "Playwright blob",
        start: "{\"method\": \"onBlobReportMetadata\", \"params\": {\"version\": 2}}\n",
        test: |number| {
            let result = format!("\"result\": {{\"id\": \"r{number}\"");
            let step = format!(
                "\"resultId\": \"r{number}\", \"step\": {{\"id\": \"s\", \"title\": \"s\"}}"
            );
            format!(
                "{{\"method\": \"onTestBegin\", \"params\": {{\"testId\": \"t{number}\", {result}}}}}}}\n\
                 {{\"method\": \"onStepBegin\", \"params\": {{{step}}}}}\n\
                 {{\"method\": \"onTestEnd\", \"params\": {{\"test\": {{\"testId\": \"t{number}\"}}, \
                 {result}, \"status\": \"failed\", \"errors\": [{{\"message\": \"{}\"}}]}}}}}}\n",
                text(number)
            )
        },
        end: "{\"method\": \"onEnd\", \"params\": {\"result\": {\"status\": \"failed\"}}}\n",
    }
}

/// Blob reports that need more and more memory: steps of results that do not end, and ids of tests.
pub(super) fn endless_blobs() -> [Report; 2] {
    let start = "{\"method\": \"onBlobReportMetadata\", \"params\": {\"version\": 2}}\n";
    let steps = |number| {
        let result = number / 500;
        let title = "x".repeat(1000);
        format!(
            "{{\"method\": \"onTestBegin\", \"params\": {{\"testId\": \"t\", \
             \"result\": {{\"id\": \"r{number}\"}}}}}}\n\
             {{\"method\": \"onStepBegin\", \"params\": {{\"resultId\": \"r{result}\", \
             \"step\": {{\"id\": \"s{number}\", \"title\": \"{title}\"}}}}}}\n"
        )
    };
    let ids = |number| {
        let id = format!("{number:0>240}");
        format!(
            "{{\"method\": \"onTestEnd\", \"params\": {{\"test\": {{\"testId\": \"{id}\"}}}}}}\n"
        )
    };
    [
        Report { name: "steps of blobs", start, test: steps, end: "" },
        Report { name: "ids of blobs", start, test: ids, end: "" },
    ]
}
