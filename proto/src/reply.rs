//! Replies to the parts of a gathered call.

use prost::{Message, bytes::Bytes};
use tonic::{Code, Status};
use tonic_types::pb;

use crate::{
    Fault,
    catalog::{TestCase, TestCaseReply},
};

impl From<Result<Option<TestCase>, Status>> for TestCaseReply {
    fn from(outcome: Result<Option<TestCase>, Status>) -> Self {
        match outcome {
            Ok(test_case) => Self { test_case, failure: None },
            Err(status) => Self { test_case: None, failure: Some(encoded(&status)) },
        }
    }
}

/// Returns `None` for a test case that others are changing.
impl From<TestCaseReply> for Result<Option<TestCase>, Status> {
    fn from(TestCaseReply { test_case, failure }: TestCaseReply) -> Self {
        failure.map_or(Ok(test_case), |failure| Err(decoded(failure)))
    }
}

/// Returns a status as google.rpc.Status, which it already is if it has details.
fn encoded(status: &Status) -> Bytes {
    if !status.details().is_empty() {
        return Bytes::copy_from_slice(status.details());
    }
    let (code, message) = (status.code().into(), status.message().to_owned());
    pb::Status { code, message, details: Vec::new() }.encode_to_vec().into()
}

fn decoded(details: Bytes) -> Status {
    match pb::Status::decode(&*details) {
        Ok(status) => Status::with_details(Code::from(status.code), status.message, details),
        Err(error) => Fault::internal(error).into(),
    }
}

#[cfg(test)]
mod tests {
    use tonic_types::StatusExt as _;

    use super::*;

    #[test]
    fn failures_arrive_as_they_were() {
        let invalid = Status::from(Fault::invalid("Name", "must not be blank"));
        for status in [invalid, Status::unavailable("stopping")] {
            let sent = TestCaseReply::from(Err(status.clone())).encode_to_vec();
            let received = TestCaseReply::decode(&*sent).unwrap();
            let received = Result::from(received).unwrap_err();
            assert_eq!((received.code(), received.message()), (status.code(), status.message()));
            assert_eq!(
                format!("{:?}", received.get_error_details()),
                format!("{:?}", status.get_error_details())
            );
        }
    }

    #[test]
    fn a_test_case_that_others_change_has_no_outcome() {
        let sent = TestCaseReply::from(Ok(None)).encode_to_vec();
        assert_eq!(Result::from(TestCaseReply::decode(&*sent).unwrap()).unwrap(), None);
    }
}
