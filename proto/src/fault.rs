//! How a call fails. It is part of the contract.

use std::{collections::HashMap, time::Duration};

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, FieldViolation, StatusExt};

type Source = Box<dyn std::error::Error + Send + Sync>;

/// What is wrong with one field of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Where the field is: a JSON pointer (RFC 6901) into the body, without its leading slash.
    pub field: String,
    /// What is wrong, for the person who sent it.
    pub problem: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let field = if self.field.is_empty() { "the body" } else { &self.field };
        write!(f, "{field} {}", self.problem)
    }
}

/// Why a call could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// There is no such record for this customer.
    #[error("no such {0}")]
    NotFound(&'static str),

    /// A name that has to be unique is taken.
    #[error("a {0} of that name already exists")]
    AlreadyExists(&'static str),

    /// The change was based on a version that is no longer the current one.
    #[error("the {0} was changed by someone else; read it again")]
    Stale(&'static str),

    /// The state of a record does not allow what was asked.
    #[error("{reason}")]
    Conflict { code: &'static str, reason: String },

    /// The request itself is wrong.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Invalid(Vec<Violation>),

    /// As [`Fault::Invalid`], with a code of its own.
    #[error("{reason}")]
    Refused { code: &'static str, reason: String },

    /// The body can't be read at all.
    #[error("{0}")]
    Malformed(String),

    /// Of a token as well as of a password; what exactly is wrong is not told.
    #[error("the token, or the email with its password, is missing or not valid")]
    Unauthenticated,

    #[error("{0}")]
    Forbidden(String),

    /// There is more to do than can be done; try again later.
    #[error("too many requests; try again later")]
    Busy(Duration),

    /// Something that is needed cannot be reached now; try again later.
    #[error("{0} is not available; try again later")]
    Unavailable(&'static str),

    #[error("internal error")]
    Internal(#[source] Source),
}

impl Fault {
    pub fn invalid(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Invalid(vec![Violation { field: field.into(), problem: problem.into() }])
    }

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
            Self::Busy(_) => Code::ResourceExhausted,
            Self::Unavailable(_) => Code::Unavailable,
            Self::Internal(_) => Code::Internal,
        }
    }

    /// The stable name of the fault that clients can rely on.
    fn reason(&self) -> &'static str {
        match self {
            Self::NotFound(_) => "not_found",
            Self::AlreadyExists(_) => "already_exists",
            Self::Stale(_) => "stale_data_version",
            Self::Conflict { code, .. } | Self::Refused { code, .. } => code,
            Self::Invalid(_) => "invalid",
            Self::Malformed(_) => "malformed",
            Self::Unauthenticated => "unauthenticated",
            Self::Forbidden(_) => "forbidden",
            Self::Busy(_) => "busy",
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

/// Where a fault leaves the service: causes are logged here, once, and never sent.
impl From<Fault> for Status {
    fn from(fault: Fault) -> Self {
        let mut details = ErrorDetails::new();
        details.set_error_info(fault.reason(), "assay", HashMap::new());
        match &fault {
            Fault::Invalid(violations) => {
                let violation = |v: &Violation| FieldViolation::new(&v.field, &v.problem);
                details.set_bad_request(violations.iter().map(violation).collect::<Vec<_>>());
            }
            Fault::Busy(pause) => {
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
        Self::with_error_details(fault.code(), fault.to_string(), details)
    }
}

#[cfg(feature = "sql")]
mod sql {
    use sqlx::{Error, error::DatabaseError};

    use super::Fault;

    /// A database that cannot be reached, or is going away, is unavailable; all else is a bug.
    impl From<Error> for Fault {
        fn from(error: Error) -> Self {
            let gone = match &error {
                Error::Io(_) | Error::PoolTimedOut | Error::PoolClosed | Error::WorkerCrashed => {
                    true
                }
                Error::Database(error) => is_passing(&**error),
                _ => false,
            };
            if gone {
                tracing::warn!(%error, "database unavailable");
                return Self::Unavailable("the database");
            }
            Self::internal(error)
        }
    }

    /// Whether what a database refuses may work later, without anybody changing the statement:
    /// PostgreSQL's classes for lost connections (08), too few resources (53), operator
    /// intervention (57) and transactions that may be tried again (40); a lock that somebody
    /// else holds for too long (55P03); and a server that only reads, as operators have it do
    /// when its disk is full (25006).
    pub fn is_passing(error: &dyn DatabaseError) -> bool {
        let code = error.code().unwrap_or_default();
        ["08", "53", "57", "40", "55P03", "25006"].iter().any(|class| code.starts_with(class))
    }

    /// Gives a violated constraint its meaning.
    pub trait OnConstraint<T> {
        fn on_constraint(self, name: &str, meaning: Fault) -> Result<T, Fault>;
    }

    impl<T, E: Into<Fault> + AsDatabaseError> OnConstraint<T> for Result<T, E> {
        fn on_constraint(self, name: &str, meaning: Fault) -> Result<T, Fault> {
            self.map_err(|error| match error.violated() {
                Some(violated) if violated == name => meaning,
                _ => error.into(),
            })
        }
    }

    /// An error that may carry the name of a constraint.
    pub trait AsDatabaseError {
        fn violated(&self) -> Option<&str>;
    }

    impl AsDatabaseError for Error {
        fn violated(&self) -> Option<&str> {
            self.as_database_error()?.constraint()
        }
    }

    /// So that several constraints can be given their meaning one after the other.
    impl AsDatabaseError for Fault {
        fn violated(&self) -> Option<&str> {
            let Self::Internal(source) = self else { return None };
            source.downcast_ref::<Error>()?.violated()
        }
    }
}

#[cfg(feature = "sql")]
pub use sql::{OnConstraint, is_passing};
