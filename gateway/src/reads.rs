//! Reads of single records, gathered into few calls.

use assay_auth::Caller;
use assay_proto::{
    Fault,
    catalog::{BatchGetTestCasesRequest, FoundTestCase, TestCase},
};
use assay_runtime::{Gather, grpc::MESSAGE_LIMIT};
use tonic::Status;

use crate::{admission::FairChannel, services::TestCases};

/// A caller, and the project in a path, or none in a permanent URL.
type Scope = (Caller, Option<String>);

/// Reads of test cases. Those of one caller in one project that arrive during a call to the catalog
/// form the next call.
#[derive(Clone)]
pub(crate) struct CaseReads(Gather<Scope, String, TestCase>);

impl CaseReads {
    pub(crate) fn new(catalog: &FairChannel) -> Self {
        let cases = TestCases::new(catalog.clone()).max_decoding_message_size(MESSAGE_LIMIT);
        Self(Gather::new(catalog.shares(), move |scope, ids| {
            let cases = cases.clone();
            async move {
                let found = find(cases, scope, ids).await?;
                let found = found.into_iter().map(|found| found.test_case);
                Ok(found.map(|case| case.ok_or(Fault::NotFound("test case"))).collect())
            }
        }))
    }

    /// Returns a test case, of any project of the customer if none is given.
    pub(crate) async fn get(
        &self,
        caller: Caller,
        project_id: Option<String>,
        id: String,
    ) -> Result<TestCase, Status> {
        self.0.run((caller, project_id), id).await
    }
}

/// Calls the catalog until it has answered for all ids. Large test cases take several calls.
async fn find(
    mut cases: TestCases,
    (caller, project_id): Scope,
    mut ids: Vec<String>,
) -> Result<Vec<FoundTestCase>, Status> {
    let mut found = Vec::with_capacity(ids.len());
    while !ids.is_empty() {
        let request = BatchGetTestCasesRequest { project_id: project_id.clone(), ids: ids.clone() };
        let answer = cases.batch_get_test_cases(caller.call(request)).await?.into_inner();
        if answer.items.is_empty() {
            return Err(Fault::internal("the catalog has not answered for any id").into());
        }
        ids.drain(..answer.items.len().min(ids.len()));
        found.extend(answer.items);
    }
    Ok(found)
}
