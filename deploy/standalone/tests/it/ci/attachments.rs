//! Files that a report refers to.

use std::fs;

use serde_json::Value;

use super::{Job, executions};
use crate::{customer::Customer, reports::report_path, world::id};

/// Names with characters that forms escape, each with the end of the name of its artifact.
const NAMES: [(&str, &str); 4] = [
    (r"shots\cart.png", "-cart.png"),
    (r"C:\shots\\pay.png", "-pay.png"),
    (r#"shots/the "total".png"#, "-the__total_.png"),
    ("shots/Übersicht; 2.png", "-_bersicht__2.png"),
];

#[tokio::test(flavor = "multi_thread")]
async fn attachments_are_found_by_paths_with_any_characters() {
    let customer = Customer::new().await;
    let job = Job::new(&customer).await;
    fs::create_dir(job.folder.join("shots")).unwrap();
    for (name, _) in NAMES {
        fs::write(job.folder.join(name), name).unwrap();
    }
    let attachments = NAMES.map(|(name, _)| format!("[[ATTACHMENT|{name}]]\n")).concat();
    let output = format!("<system-out><![CDATA[{attachments}]]></system-out>");
    job.report(&format!("<testsuite><testcase name='pays'>{output}</testcase></testsuite>"));

    let (code, output) = job.assay_ci("upload reports/junit.xml").await;

    assert_eq!(code, 0, "{output}");
    let execution = executions(&customer.api).await.remove(0);
    let project = format!("/api/projects/{}", execution["ProjectId"].as_str().unwrap());
    let report = report_path(&project, &execution["TestReports"][0]);
    let instances = customer.api.get(&format!("{report}/instances")).await.ok();
    let instance = format!("{report}/instances/{}", id(&instances[0]));
    let instance: Value = customer.api.get(&instance).await.ok();
    for (name, artifact) in NAMES {
        assert!(instance.to_string().contains(artifact), "{name}: {instance:#}");
    }
}
