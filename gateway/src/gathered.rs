//! Calls for single test cases and for pages of them, gathered into few.

use assay_auth::Caller;
use assay_fair::Gather;
use assay_proto::{
    Fault, Page, Replies,
    catalog::{
        BatchCreateTestCasesRequest, BatchGetTestCasesRequest, BatchListTestCasesRequest,
        BatchUpdateTestCasesRequest, CreateTestCaseRequest, TestCase, TestCaseBatch, TestCaseInput,
        UpdateTestCaseRequest, test_case_service_client::TestCaseServiceClient,
    },
};
use assay_rpc::list::split;
use assay_runtime::trace;
use axum::extract::FromRef as _;
use prost::Message;
use tonic::{Response, Status, Streaming};

use crate::admission::FairChannel;

/// A caller, and the id of a project.
type Group<P> = (Caller, P);

/// Outcomes of the parts of a call. A part without one must be called alone: a change whose test case others have
/// locked, or a page that does not fit into the message.
type Outcomes<T> = Vec<Result<Option<T>, Status>>;
type Answer<B> = Result<Response<Streaming<B>>, Status>;

/// Calls for single test cases and for pages of them. Those of one kind, of one caller and in one project
/// that arrive during a call to the catalog form the next call.
#[derive(Clone)]
pub(crate) struct CaseCalls {
    /// Without a project in permanent URLs.
    reads: Gather<Group<Option<String>>, String, Option<TestCase>>,
    creations: Gather<Group<String>, CreateTestCaseRequest, Option<TestCase>>,
    changes: Gather<Group<String>, UpdateTestCaseRequest, Option<TestCase>>,
    pages: Gather<Group<String>, Page, Option<TestCaseBatch>>,
    cases: TestCaseServiceClient<FairChannel>,
}

impl CaseCalls {
    pub(crate) fn new(catalog: &FairChannel) -> Self {
        let cases = TestCaseServiceClient::from_ref(catalog);
        let (shares, [get, create, update, list]) =
            (catalog.shares(), [&cases; 4].map(Clone::clone));
        Self {
            reads: Gather::new(shares, move |(caller, project_id): Group<_>, ids: Vec<_>| {
                let (mut cases, count) = (get.clone(), ids.len());
                async move {
                    let request = caller.call(BatchGetTestCasesRequest { project_id, ids });
                    Ok(outcomes(cases.batch_get_test_cases(request).await, count).await)
                }
            }),
            creations: Gather::new(shares, move |(caller, project_id): Group<String>, requests| {
                let cases = create.clone();
                in_parts(requests, async move |requests| {
                    let project_id = project_id.clone();
                    let request = BatchCreateTestCasesRequest { project_id, requests };
                    cases.clone().batch_create_test_cases(caller.call(request)).await
                })
            }),
            changes: Gather::new(shares, move |(caller, project_id): Group<String>, requests| {
                let cases = update.clone();
                in_parts(requests, async move |requests| {
                    let project_id = project_id.clone();
                    let request =
                        BatchUpdateTestCasesRequest { project_id, requests, waits: false };
                    cases.clone().batch_update_test_cases(caller.call(request)).await
                })
            }),
            pages: Gather::new(shares, move |(caller, project_id): Group<_>, pages: Vec<_>| {
                let (mut cases, count) = (list.clone(), pages.len());
                async move {
                    let request = caller.call(BatchListTestCasesRequest { project_id, pages });
                    Ok(outcomes(cases.batch_list_test_cases(request).await, count).await)
                }
            }),
            cases,
        }
    }

    /// Returns a [usual page](crate::list::Listing::usual_page) of the active test cases of a project.
    /// Returns `None` if it may be large, and needs a call whose response is a stream.
    pub(crate) async fn list(
        &self,
        caller: Caller,
        project_id: String,
        page: Page,
    ) -> Result<Option<TestCaseBatch>, Status> {
        self.pages.run((caller, project_id), page).await
    }

    /// Returns a test case, of any project of the customer if none is given.
    pub(crate) async fn get(
        &self,
        caller: Caller,
        project_id: Option<String>,
        id: String,
    ) -> Result<TestCase, Status> {
        present(self.reads.run((caller, project_id), id).await?)
    }

    /// Creates a test case as part of the current trace.
    pub(crate) async fn create(
        &self,
        caller: Caller,
        project_id: String,
        input: TestCaseInput,
    ) -> Result<TestCase, Status> {
        let request = CreateTestCaseRequest { test_case: Some(input), trace: trace::to_map() };
        present(self.creations.run((caller, project_id), request).await?)
    }

    /// Updates a test case as part of the current trace. If others are changing it, it waits in a call
    /// of its own.
    pub(crate) async fn update(
        &self,
        caller: Caller,
        project_id: String,
        request: UpdateTestCaseRequest,
    ) -> Result<TestCase, Status> {
        let request = UpdateTestCaseRequest { trace: trace::to_map(), ..request };
        let group = (caller.clone(), project_id.clone());
        if let Some(case) = self.changes.run(group, request.clone()).await? {
            return Ok(case);
        }
        let request =
            BatchUpdateTestCasesRequest { project_id, requests: vec![request], waits: true };
        let answer = self.cases.clone().batch_update_test_cases(caller.call(request)).await;
        present(outcomes(answer, 1).await.remove(0)?)
    }
}

fn present(case: Option<TestCase>) -> Result<TestCase, Status> {
    case.ok_or_else(|| Fault::internal("the catalog has not answered").into())
}

/// Makes a call for each part of the requests that fits into a message. A call that fails is the
/// outcome of its own part.
async fn in_parts<R: Message, B: Replies>(
    requests: Vec<R>,
    call: impl AsyncFn(Vec<R>) -> Answer<B>,
) -> Result<Outcomes<B::Outcome>, Status> {
    let mut all = Vec::with_capacity(requests.len());
    for part in split(requests) {
        let count = part.len();
        all.extend(outcomes(call(part).await, count).await);
    }
    Ok(all)
}

/// Returns an outcome for each part of a call. Those that do not arrive fail as the call does.
async fn outcomes<B: Replies>(answer: Answer<B>, count: usize) -> Outcomes<B::Outcome> {
    let mut outcomes: Outcomes<_> = Vec::with_capacity(count);
    let received = receive(answer, &mut outcomes).await;
    if outcomes.len() < count {
        let cut = || Fault::internal("the catalog has not answered for each part of a call").into();
        let failure = received.err().unwrap_or_else(cut);
        outcomes.resize_with(count, || Err(failure.clone()));
    }
    outcomes
}

async fn receive<B: Replies>(
    answer: Answer<B>,
    outcomes: &mut Outcomes<B::Outcome>,
) -> Result<(), Status> {
    let mut batches = answer?.into_inner();
    while let Some(batch) = batches.message().await? {
        outcomes.extend(batch.into_outcomes());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use assay_proto::{
        Codec,
        catalog::{TestCaseReply, TestCaseReplyBatch},
    };
    use axum::body::Body;
    use futures::stream;
    use http::StatusCode;
    use tonic::{Code, codec::Codec as _};

    use super::*;

    /// An answer that breaks off after these replies.
    fn broken_off(replies: Outcomes<TestCase>) -> Response<Streaming<TestCaseReplyBatch>> {
        let items = replies.into_iter().map(TestCaseReply::from).collect();
        let message = TestCaseReplyBatch { items }.encode_to_vec();
        let length = u32::try_from(message.len()).unwrap().to_be_bytes();
        let frames = [Ok([&[0], &length[..], &message].concat()), Err(Status::unavailable("gone"))];
        let (body, ok) = (Body::from_stream(stream::iter(frames)), StatusCode::OK);
        let decoder = Codec::<(), _>::default().decoder();
        Response::new(Streaming::new_response(decoder, body, ok, None, None))
    }

    fn codes(outcomes: Outcomes<TestCase>) -> Vec<Code> {
        outcomes
            .into_iter()
            .map(|outcome| outcome.map_or_else(|s| s.code(), |_| Code::Ok))
            .collect()
    }

    #[tokio::test]
    async fn replies_count_although_the_call_fails() {
        let answer = broken_off(vec![Ok(None), Err(Status::not_found("no such test case"))]);
        let expected = [Code::Ok, Code::NotFound, Code::Unavailable, Code::Unavailable];
        assert_eq!(codes(outcomes(Ok(answer), 4).await), expected);
    }

    #[tokio::test]
    async fn a_call_that_fails_does_not_affect_those_before_it() {
        let of = |description: &str| UpdateTestCaseRequest {
            changes: Some(TestCaseInput {
                description: description.to_owned(),
                ..Default::default()
            }),
            ..Default::default()
        };
        let large = "d".repeat(64 << 10);
        let outcomes =
            in_parts(vec![of("small"), of(&large), of("last")], async |part| match part.len() {
                1 if part[0] == of(&large) => Err(Status::unavailable("stopping")),
                count => Ok(broken_off(vec![Ok(None); count])),
            });
        let expected = [Code::Ok, Code::Unavailable, Code::Ok];
        assert_eq!(codes(outcomes.await.unwrap()), expected);
    }
}
