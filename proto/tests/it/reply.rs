//! Tests of replies to the parts of a gathered call.

use assay_proto::{Fault, catalog::TestCaseReply};
use prost::Message as _;
use tonic::Status;
use tonic_types::StatusExt as _;

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
