//! The failures of calls, with their gRPC status and the stable code that clients see.

use std::{collections::HashMap, time::Duration};

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, FieldViolation, StatusExt};

type Source = Box<dyn std::error::Error + Send + Sync>;

/// Maximum size of a text in a status, and of all violations together, in bytes. They may quote what a client has sent,
/// and become headers: larger ones than the callee accepts would end the connection for all calls.
const LONGEST_TEXT: usize = 1000;
const LARGEST: usize = 16 << 10;

/// Size of a violation without its texts in bytes: the tags and lengths of three fields.
const FRAME: usize = 9;

/// Maximum size of the headers of a response in bytes, of which a status has the most: its message with three bytes
/// for each that is not ASCII, and its details in base64.
pub const LARGEST_HEADERS: u32 = 128 << 10;

/// An invalid field of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// JSON pointer (RFC 6901) to the field in the body, without the leading slash. Empty for the
    /// body itself.
    pub field: String,
    /// Rule that the field violates, as in "must not be blank".
    pub problem: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let field = if self.field.is_empty() { "body" } else { &self.field };
        write!(f, "{field}: {}", self.problem)
    }
}

/// Reason why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The record does not exist, or belongs to another customer.
    #[error("no such {0}")]
    NotFound(&'static str),

    /// A record with the same value of a unique field exists, such as a "customer with this
    /// subdomain".
    #[error("a {0} already exists")]
    AlreadyExists(&'static str),

    /// The change is based on an outdated version of the record.
    #[error("the {0} has changed since the given version; read it again")]
    Stale(&'static str),

    /// The state of a record does not allow the call.
    #[error("{reason}")]
    Conflict { code: &'static str, reason: String },

    /// Fields of the request are invalid.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Invalid(Vec<Violation>),

    /// The request is invalid as a whole; the code says why.
    #[error("{reason}")]
    Refused { code: &'static str, reason: String },

    /// The body cannot be parsed.
    #[error("{0}")]
    Malformed(String),

    /// A token or password is missing or wrong. The message does not say which.
    #[error("the credentials are missing or not valid")]
    Unauthenticated,

    /// The caller lacks a permission.
    #[error("{0}")]
    Forbidden(String),

    /// A limit of what may exist at the same time is reached. The code says which.
    #[error("{reason}")]
    Exhausted { code: &'static str, reason: String },

    /// A rate limit is reached; the caller may retry after the delay.
    #[error("too many requests; try again later")]
    Busy(Duration),

    /// A rate limit is reached, with the reason; the caller may retry after the delay.
    #[error("{reason}; try again later")]
    Throttled { reason: &'static str, after: Duration },

    /// A dependency, such as "the database", cannot be reached at the moment.
    #[error("{0} is unavailable; try again later")]
    Unavailable(&'static str),

    /// A bug or an invalid stored value. The cause is logged, not sent.
    #[error("internal error")]
    Internal(#[source] Source),
}

impl Fault {
    /// Returns the fault of one invalid field.
    pub fn invalid(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Invalid(vec![Violation { field: field.into(), problem: problem.into() }])
    }

    /// Wraps the cause of an internal error.
    pub fn internal(source: impl Into<Source>) -> Self {
        Self::Internal(source.into())
    }

    fn code(&self) -> Code {
        match self {
            Self::NotFound(_) => Code::NotFound,
            Self::AlreadyExists(_) => Code::AlreadyExists,
            Self::Stale(_) => Code::Aborted,
            Self::Conflict { .. } => Code::FailedPrecondition,
            Self::Invalid(_) | Self::Refused { .. } => Code::InvalidArgument,
            Self::Malformed(_) => Code::OutOfRange,
            Self::Unauthenticated => Code::Unauthenticated,
            Self::Forbidden(_) => Code::PermissionDenied,
            Self::Exhausted { .. } | Self::Busy(_) | Self::Throttled { .. } => {
                Code::ResourceExhausted
            }
            Self::Unavailable(_) => Code::Unavailable,
            Self::Internal(_) => Code::Internal,
        }
    }

    /// Returns the stable code of the fault.
    fn reason(&self) -> &'static str {
        match self {
            Self::NotFound(_) => "not_found",
            Self::AlreadyExists(_) => "already_exists",
            Self::Stale(_) => "stale_data_version",
            Self::Conflict { code, .. }
            | Self::Refused { code, .. }
            | Self::Exhausted { code, .. } => code,
            Self::Invalid(_) => "invalid",
            Self::Malformed(_) => "malformed",
            Self::Unauthenticated => "unauthenticated",
            Self::Forbidden(_) => "forbidden",
            Self::Busy(_) | Self::Throttled { .. } => "busy",
            Self::Unavailable(_) => "unavailable",
            Self::Internal(_) => "internal",
        }
    }
}

impl From<Violation> for Fault {
    fn from(violation: Violation) -> Self {
        Self::Invalid(vec![violation])
    }
}

/// Converts the fault at the boundary of the service. Causes are logged here, once, and never sent.
impl From<Fault> for Status {
    fn from(fault: Fault) -> Self {
        let mut details = ErrorDetails::new();
        details.set_error_info(fault.reason(), "assay", HashMap::new());
        match &fault {
            Fault::Invalid(violations) => {
                details.set_bad_request(sent(violations));
            }
            Fault::Busy(pause) | Fault::Throttled { after: pause, .. } => {
                details.set_retry_info(Some(*pause));
            }
            Fault::Internal(source) => {
                let causes =
                    std::iter::successors(Some(&**source as &dyn std::error::Error), |e| {
                        e.source()
                    });
                let chain: Vec<String> = causes.map(ToString::to_string).collect();
                tracing::error!(error = %chain.join(": "), "call failed");
            }
            _ => {}
        }
        Self::with_error_details(fault.code(), shortened(&fault.to_string(), LARGEST), details)
    }
}

/// Returns the first violations, as many as fit into a status.
fn sent(violations: &[Violation]) -> Vec<FieldViolation> {
    let mut size = 0;
    let texts = violations.iter().map(|Violation { field, problem }| {
        (shortened(field, LONGEST_TEXT), shortened(problem, LONGEST_TEXT))
    });
    let fitting = texts.take_while(|(field, problem)| {
        size += FRAME + field.len() + problem.len();
        size <= LARGEST
    });
    fitting.map(|(field, problem)| FieldViolation::new(field, problem)).collect()
}

/// Returns the beginning of a text.
fn shortened(text: &str, longest: usize) -> String {
    let kept = &text[..text.floor_char_boundary(longest)];
    if kept.len() == text.len() { text.to_owned() } else { format!("{kept}…") }
}

#[cfg(feature = "sql")]
mod sql {
    use sqlx::{Error, error::DatabaseError};

    use super::Fault;

    /// Error code of PostgreSQL for a text with a NUL character, which it cannot store
    /// (`character_not_in_repertoire`), and for the escape of one in JSON (`untranslatable_character`).
    const NUL: [&str; 2] = ["22021", "22P05"];

    /// Reports an unreachable or restarting database and a record that others have locked as unavailable, a text
    /// that the database cannot store as invalid, and any other error as internal.
    impl From<Error> for Fault {
        fn from(error: Error) -> Self {
            let is_unavailable = match &error {
                Error::Io(_) | Error::PoolTimedOut | Error::PoolClosed | Error::WorkerCrashed => {
                    true
                }
                Error::Database(error) => is_transient(&**error),
                _ => false,
            };
            let code = error.as_database_error().and_then(|error| error.code());
            if code.as_deref().is_some_and(is_contended) {
                tracing::info!(%error, "gave way to other transactions");
                return Self::Unavailable("a record that others are changing");
            }
            if is_unavailable {
                tracing::warn!(%error, "database unavailable");
                return Self::Unavailable("the database");
            }
            if code.is_some_and(|code| NUL.contains(&&*code)) {
                return Self::invalid("", "must not contain NUL characters");
            }
            Self::internal(error)
        }
    }

    /// Returns whether the same statement may succeed later. PostgreSQL's error classes for this
    /// are lost connections (08), insufficient resources (53), operator intervention (57),
    /// contention, and a read-only server (25006), which operators use when its disk is full.
    pub fn is_transient(error: &dyn DatabaseError) -> bool {
        let code = error.code().unwrap_or_default();
        let is_of = |class: &&str| code.starts_with(class);
        is_contended(&code) || ["08", "53", "57", "25006"].iter().any(is_of)
    }

    /// Returns whether an error code says that other transactions were in the way: it is to be retried (class 40,
    /// as after a deadlock), or a lock was not acquired in time (55P03).
    fn is_contended(code: &str) -> bool {
        code.starts_with("40") || code == "55P03"
    }

    /// Translation of violated constraints.
    pub trait OnConstraint<T> {
        /// Fails with `fault` if the constraint `name` was violated.
        fn on_constraint(self, name: &str, fault: Fault) -> Result<T, Fault>;
    }

    impl<T, E: Into<Fault> + AsDatabaseError> OnConstraint<T> for Result<T, E> {
        fn on_constraint(self, name: &str, fault: Fault) -> Result<T, Fault> {
            self.map_err(|error| match error.violated() {
                Some(violated) if violated == name => fault,
                _ => error.into(),
            })
        }
    }

    /// An error that may name a violated constraint.
    pub trait AsDatabaseError {
        /// Returns the name of the violated constraint.
        fn violated(&self) -> Option<&str>;
    }

    impl AsDatabaseError for Error {
        fn violated(&self) -> Option<&str> {
            self.as_database_error()?.constraint()
        }
    }

    /// Allows several constraints to be translated in a chain.
    impl AsDatabaseError for Fault {
        fn violated(&self) -> Option<&str> {
            let Self::Internal(source) = self else { return None };
            source.downcast_ref::<Error>()?.violated()
        }
    }
}

#[cfg(feature = "sql")]
pub use sql::{OnConstraint, is_transient};
