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
    /// Parses the ids of a path that has all of them, or of a short one, where all but the last are empty.
    pub fn parse(project: &str, test_case: &str, test_plan: &str, id: &str) -> Result<Self, Fault> {
        Ok(Self {
            project: ProjectId::from_path_unless_empty(project)?,
            test_case: TestCaseId::from_path_unless_empty(test_case)?,
            test_plan: TestPlanId::from_path_unless_empty(test_plan)?,
            id: TestReportId::from_path(id)?,
        })
    }
}
