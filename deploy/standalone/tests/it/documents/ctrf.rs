//! CTRF reports that Assay writes, checked by the reference implementation of the format.

use std::{fs::File, io::BufReader};

use assay_formats::{CtrfWriter, read};
use assay_proto::Timestamp;
use uuid::Uuid;

use super::{at, dir, node, text_of};

const CHECK: &str = "import { readFileSync } from 'node:fs';
import { validate } from 'ctrf';
for (const file of process.argv.slice(2)) {
  const { valid, errors } = validate(JSON.parse(readFileSync(file)));
  if (!valid) { console.log(file, errors); process.exitCode = 1; }
}
";

#[tokio::test]
async fn written_ctrf_reports_are_valid() {
    let dir = dir();
    std::os::unix::fs::symlink(at("target/tools/node/node_modules"), dir.join("node_modules"))
        .unwrap();
    std::fs::write(dir.join("check.mjs"), CHECK).unwrap();
    let mut check = node(&dir);
    check.arg("check.mjs");
    for sample in [
        "junit/pytest-reruns.xml",
        "junit/surefire.xml",
        "playwright-json/results.json",
        "cucumber-messages/messages.ndjson",
        "go-test/shop.json",
        "robot/output.xml",
        "ctrf/jest.json",
    ] {
        let file = File::open(at("services/kit/formats/tests/files").join(sample)).unwrap();
        let mut writer = CtrfWriter::default();
        let id = Uuid::now_v7().to_string();
        let mut report = writer.open(&id, Timestamp::default(), "assay");
        read(BufReader::new(file), |test| {
            writer.test(&mut report, &test);
            Ok(())
        })
        .unwrap();
        let name = sample.replace('/', "-");
        std::fs::write(dir.join(&name), report + &writer.close()).unwrap();
        check.arg(name);
    }
    let output = check.output().await.unwrap();
    assert!(output.status.success(), "{}", text_of(&output));
}
