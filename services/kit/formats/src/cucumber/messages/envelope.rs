//! The lines of a report, as far as they are read.

use assay_proto::Timestamp;
use serde::Deserialize;

use crate::{
    cucumber::definitions::{GherkinDocument, Pickle, TestCase},
    json::{Number, Text},
    limits::{INLINE, MESSAGE},
    times::since_1970,
};

/// A line of the report.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Envelope {
    pub(super) gherkin_document: Option<GherkinDocument>,
    pub(super) pickle: Option<Pickle>,
    pub(super) test_case: Option<TestCase>,
    pub(super) test_case_started: Option<TestCaseStarted>,
    pub(super) test_step_finished: Option<TestStepFinished>,
    pub(super) attachment: Option<ReportedAttachment>,
    pub(super) test_case_finished: Option<TestCaseFinished>,
    pub(super) parse_error: Option<ParseError>,
    pub(super) hook: Option<Hook>,
    pub(super) test_run_hook_started: Option<RunHookStarted>,
    pub(super) test_run_hook_finished: Option<RunHookFinished>,
    pub(super) test_run_finished: Option<RunFinished>,
}

/// A hook, of which those of the run matter here.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Hook {
    pub(super) id: Text<64>,
    pub(super) name: Text<256>,
    pub(super) r#type: Text<64>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RunHookStarted {
    pub(super) id: Text<64>,
    pub(super) hook_id: Text<64>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RunHookFinished {
    pub(super) test_run_hook_started_id: Text<64>,
    pub(super) result: StepResult,
}

/// The end of the run.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct RunFinished {
    pub(super) success: Option<bool>,
    pub(super) message: Text<MESSAGE>,
    pub(super) exception: Exception,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Exception {
    pub(super) message: Text<MESSAGE>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct TestCaseStarted {
    pub(super) id: Text<64>,
    pub(super) test_case_id: Text<64>,
    pub(super) timestamp: Time,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct TestStepFinished {
    #[serde(rename = "testCaseStartedId")]
    pub(super) attempt_id: Text<64>,
    #[serde(rename = "testStepId")]
    pub(super) step_id: Text<64>,
    #[serde(rename = "testStepResult")]
    pub(super) result: StepResult,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct StepResult {
    pub(super) status: Text<32>,
    pub(super) duration: Time,
    pub(super) message: Text<MESSAGE>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ReportedAttachment {
    pub(super) test_case_started_id: Text<64>,
    pub(super) body: Text<{ INLINE / 3 * 4 + 8 }>,
    /// `IDENTITY` or `BASE64`.
    pub(super) content_encoding: Text<16>,
    pub(super) media_type: Text<256>,
    pub(super) file_name: Text<MESSAGE>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct TestCaseFinished {
    pub(super) test_case_started_id: Text<64>,
    pub(super) timestamp: Time,
    pub(super) will_be_retried: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ParseError {
    pub(super) source: ParseErrorSource,
    pub(super) message: Text<MESSAGE>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ParseErrorSource {
    pub(super) uri: Text<MESSAGE>,
}

/// A time or duration.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct Time {
    pub(super) seconds: Number,
    pub(super) nanos: Number,
}

impl Time {
    pub(super) fn seconds(self) -> Option<f64> {
        Some(self.seconds.0? + self.nanos.0.unwrap_or_default() / 1e9)
    }

    pub(super) fn time(self) -> Option<Timestamp> {
        since_1970(self.seconds().map(|seconds| seconds * 1e3))
    }
}
