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
