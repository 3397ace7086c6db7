//! Replies to the parts of a gathered call.

use prost::{Message, bytes::Bytes};
use tonic::{Code, Status};
use tonic_types::pb;

use crate::{
    Fault,
    catalog::{
        TestCase, TestCaseBatch, TestCasePageReply, TestCasePageReplyBatch, TestCaseReply,
        TestCaseReplyBatch,
    },
};

/// A message with replies, each of them an outcome or a failure.
pub trait Replies: prost::Message + Default + Sized {
    type Outcome: Send;

    /// Returns the outcomes. `None` is one that the service leaves to a call of its own.
    fn into_outcomes(self) -> impl Iterator<Item = Result<Option<Self::Outcome>, Status>>;
}

/// Implements the conversions of a reply, whose field has the outcome.
macro_rules! replies {
    ($batch:ident of $reply:ident { $field:ident: $outcome:ident }) => {
        impl From<Result<Option<$outcome>, Status>> for $reply {
            fn from(outcome: Result<Option<$outcome>, Status>) -> Self {
                match outcome {
                    Ok($field) => Self { $field, failure: None },
                    Err(status) => Self { $field: None, failure: Some(encoded(&status)) },
                }
            }
        }

        impl From<$reply> for Result<Option<$outcome>, Status> {
            fn from($reply { $field, failure }: $reply) -> Self {
                failure.map_or(Ok($field), |failure| Err(decoded(failure)))
            }
        }

        impl Replies for $batch {
            type Outcome = $outcome;

            fn into_outcomes(self) -> impl Iterator<Item = Result<Option<$outcome>, Status>> {
                self.items.into_iter().map(Result::from)
            }
        }
    };
}

replies!(TestCaseReplyBatch of TestCaseReply { test_case: TestCase });
replies!(TestCasePageReplyBatch of TestCasePageReply { page: TestCaseBatch });

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
