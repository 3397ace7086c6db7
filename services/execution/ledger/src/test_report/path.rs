//! The path of a test report.

use assay_proto::{Fault, ProjectId, TestCaseId, TestPlanId, TestReportId};

/// The path by which a client refers to a test report. Absent ids are not checked.
#[derive(Clone, Copy)]
pub struct TestReportPath {
    pub project: Option<ProjectId>,
    pub test_case: Option<TestCaseId>,
    pub test_plan: Option<TestPlanId>,
    pub id: TestReportId,
}

impl TestReportPath {
    /// Parses the ids of a path that has all of them.
    pub fn parse(project: &str, test_case: &str, test_plan: &str, id: &str) -> Result<Self, Fault> {
        Ok(Self {
            project: Some(ProjectId::from_path(project)?),
            test_case: Some(TestCaseId::from_path(test_case)?),
            test_plan: Some(TestPlanId::from_path(test_plan)?),
            id: TestReportId::from_path(id)?,
        })
    }
}
