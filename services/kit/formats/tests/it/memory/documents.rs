//! Reports that are JSON documents, of any size.

use super::{Report, reports::text};

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
