//! Suites, labels and links of tests, as services store them.

use std::fs;

use assay_formats::{Test, read};
use assay_proto::{Classification, Fault};

/// The classifications of the tests of a report, by their names.
fn classified(report: &[u8]) -> Vec<(String, Classification)> {
    let mut classified = Vec::new();
    let receiver = |test: Test| {
        classified.push((test.name.clone(), test.classification().unwrap_or_default()));
        Ok::<(), Fault>(())
    };
    read(report, receiver).unwrap();
    classified
}

fn sample(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/files");
    fs::read(format!("{folder}/{name}")).unwrap()
}

#[test]
fn groups_of_testng_are_tags() {
    for (file, name) in [("testng/parallel.xml", "passes"), ("testng/testng-results.xml", "addsUp")]
    {
        for (test, Classification { suites, labels, .. }) in classified(&sample(file)) {
            let tags: Vec<_> = labels.iter().map(|label| (&*label.name, &*label.value)).collect();
            assert!(!suites.is_empty(), "{file}: {test}");
            let expected = if test == name { &[("tag", "smoke")][..] } else { &[] };
            assert_eq!(tags, expected, "{file}: {test}");
        }
    }
}

#[test]
fn categories_of_trx_are_tags() {
    let report = br#"<TestRun><Results>
        <UnitTestResult testId="1" testName="Pays" outcome="Passed"/>
        <UnitTestResult testId="2" testName="Ships" outcome="Passed"/></Results>
        <TestDefinitions><UnitTest name="Pays" id="1">
            <TestCategory><TestCategoryItem TestCategory="smoke"/></TestCategory>
            <TestMethod className="Shop.CartTest" name="Pays"/></UnitTest>
        <UnitTest name="Ships" id="2"><TestMethod className="Shop.CartTest" name="Ships"/></UnitTest>
        </TestDefinitions></TestRun>"#;
    let classified = classified(report);
    assert_eq!(classified[0].1.labels[0].value, "smoke");
    assert!(classified[1].1.labels.is_empty());
}
