//! The HTTP problem of each gRPC status.

use std::{error::Error, time::Duration};

use assay_proto::Violation;
use http::StatusCode;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use super::Problem;

/// Delay after which clients should retry if a service is unavailable.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// The codes of a body that exceeds a limit, or with which a customer would store too much.
const TOO_LARGE: [&str; 2] = ["too_large", "quota_exceeded"];

impl From<Status> for Problem {
    fn from(status: Status) -> Self {
        let details = status.get_error_details();
        match details.error_info() {
            Some(info) if info.domain == "assay" => of_fault(&status, &details, &info.reason),
            _ => of_failed_call(&status),
        }
    }
}

/// The code of a body that does not have its checksum, and its status, which tus 1.0 defines.
const CHECKSUM_MISMATCH: (&str, u16) = ("checksum_mismatch", 460);

/// Translates a fault that a service has returned.
fn of_fault(status: &Status, details: &ErrorDetails, reason: &str) -> Problem {
    let http = match status.code() {
        Code::OutOfRange => StatusCode::BAD_REQUEST,
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        Code::PermissionDenied => StatusCode::FORBIDDEN,
        Code::NotFound => return Problem::not_found(),
        Code::AlreadyExists | Code::Aborted | Code::FailedPrecondition => StatusCode::CONFLICT,
        Code::InvalidArgument if TOO_LARGE.contains(&reason) => StatusCode::PAYLOAD_TOO_LARGE,
        Code::InvalidArgument if reason == CHECKSUM_MISMATCH.0 => {
            StatusCode::from_u16(CHECKSUM_MISMATCH.1).unwrap_or(StatusCode::BAD_REQUEST)
        }
        Code::InvalidArgument => StatusCode::UNPROCESSABLE_ENTITY,
        Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        Code::Unavailable => return unavailable(),
        _ => return Problem::internal(),
    };
    let mut problem = Problem::new(http, reason.to_owned(), status.message().to_owned());
    if let Some(request) = details.bad_request() {
        let violations = request.field_violations.iter();
        problem.violations = violations
            .map(|v| Violation { field: v.field.clone(), problem: v.description.clone() })
            .collect();
    }
    problem.retry_after = details.retry_info().and_then(|info| info.retry_delay);
    problem
}

/// Translates the status of a call that has not reached the service, or whose response was lost.
fn of_failed_call(status: &Status) -> Problem {
    match status.code() {
        Code::DeadlineExceeded => Problem::timed_out(),
        _ if status.source().is_some() => unavailable(),
        // A service accepts smaller messages. JSON can be shorter than what it stands for: `1e9` is a number.
        Code::OutOfRange => Problem::too_large(),
        // The end of a stream without a status, since services do not return `Unknown` themselves.
        Code::Unavailable | Code::ResourceExhausted | Code::Unknown => unavailable(),
        code => {
            tracing::error!(%code, message = status.message(), "call failed unexpectedly");
            Problem::internal()
        }
    }
}

fn unavailable() -> Problem {
    let mut problem = Problem::of(StatusCode::SERVICE_UNAVAILABLE);
    problem.retry_after = Some(RETRY_AFTER);
    problem
}

#[test]
fn a_request_that_a_service_does_not_accept_is_too_large() {
    let message =
        "Error, decoded message length too large: found 7340032 bytes, the limit is: 4194304 bytes";
    let problem = Problem::from(Status::new(Code::OutOfRange, message));
    assert_eq!(problem.status, StatusCode::PAYLOAD_TOO_LARGE);
}

#[test]
fn a_call_that_the_service_does_not_complete_is_a_problem_of_availability() {
    let missing = "grpc-status header missing, mapped from HTTP status code 200";
    for (code, message) in [
        (Code::Unknown, missing),
        (Code::Unknown, "h2 protocol error: error reading a body from connection"),
        (Code::Unavailable, "connection refused"),
    ] {
        let problem = Problem::from(Status::new(code, message));
        assert_eq!(problem.status, StatusCode::SERVICE_UNAVAILABLE, "{message}");
        assert_eq!(problem.retry_after, Some(RETRY_AFTER), "{message}");
    }
}
