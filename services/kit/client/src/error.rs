//! Failures of requests.

use std::{error::Error, fmt, io, time::Duration};

use reqwest::StatusCode;
use serde::de::Error as _;

use crate::{foreign::visible, redirect};

/// Codes of conflicts with another request that appends to the same upload, such as one whose connection has broken.
const PASSING: [&str; 2] = ["upload_in_use", "upload_offset_mismatch"];

/// Failure of a request.
#[derive(Debug)]
pub enum ClientError {
    /// Assay answered with a problem document.
    Rejected {
        status: StatusCode,
        code: String,
        detail: String,
        /// Time after which a retry may succeed.
        retry_after: Option<Duration>,
    },
    /// The request failed.
    Unreachable(reqwest::Error),
    /// Assay, or a proxy, answered with a redirect to this URL.
    Redirected { to: String },
    /// The body of the response has more bytes than this.
    TooLarge { limit: u64 },
    /// The body of the response has more values than are parsed at once.
    TooManyValues,
    /// No part of the body arrived for this time.
    Stalled(Duration),
    /// The body of the response is not the JSON that it should be.
    Malformed(serde_json::Error),
    /// The path of a request has parts that a server would not take literally.
    Path(String),
    /// The token has characters that cannot be sent.
    Token,
}

impl ClientError {
    /// Returns whether a retry would fail in the same way.
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Rejected { status, code, .. } => {
                let may_pass = [StatusCode::TOO_MANY_REQUESTS, StatusCode::REQUEST_TIMEOUT];
                let may_pass = may_pass.contains(status) || PASSING.contains(&code.as_str());
                status.is_client_error() && !may_pass
            }
            Self::Unreachable(error) => error.is_builder(),
            Self::Stalled(_) | Self::Malformed(_) => false,
            Self::Redirected { .. }
            | Self::TooLarge { .. }
            | Self::TooManyValues
            | Self::Path(_)
            | Self::Token => true,
        }
    }

    /// Returns the failure to parse a body that was received at the same time.
    pub fn from_json(error: serde_json::Error) -> Self {
        if !error.is_io() {
            return Self::Malformed(error);
        }
        let error = io::Error::from(error);
        let error = error.downcast::<Self>();
        error.unwrap_or_else(|error| Self::Malformed(serde_json::Error::custom(error)))
    }

    /// Returns the HTTP status of a rejected request.
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Rejected { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Returns whether Assay rejected the request with this code.
    pub fn has_code(&self, expected: &str) -> bool {
        matches!(self, Self::Rejected { code, .. } if code == expected)
    }

    /// Returns the time after which a retry may succeed, if Assay has named it.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Rejected { retry_after, .. } => *retry_after,
            _ => None,
        }
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rejected { status, code, detail, .. } if code.is_empty() && detail.is_empty() => {
                write!(f, "{status}")
            }
            Self::Rejected { status, code, detail, .. } => {
                write!(f, "{status} {}: {}", visible(code), visible(detail))
            }
            Self::Unreachable(error) => f.write_str(&visible(&chain(error))),
            Self::Redirected { to } => write!(
                f,
                "Assay redirects to {}, and redirects are not followed; if that is your Assay, set \
                 ASSAY_URL to it",
                visible(redirect::base(to))
            ),
            Self::TooLarge { limit } => write!(f, "the answer has more than {limit} bytes"),
            Self::TooManyValues => f.write_str("the answer has too many values"),
            Self::Stalled(time) => {
                write!(f, "no part of the answer arrived for {} seconds", time.as_secs())
            }
            Self::Malformed(error) => {
                write!(f, "the answer is not as expected: {}", visible(&error.to_string()))
            }
            Self::Path(path) => write!(f, "{} is not a path of a request", visible(path)),
            Self::Token => f.write_str("ASSAY_TOKEN: must be a text without line breaks"),
        }
    }
}

/// Returns an error with its causes.
fn chain(error: &reqwest::Error) -> String {
    let (mut text, mut error): (_, &dyn Error) = (error.to_string(), error);
    while let Some(source) = error.source() {
        text = format!("{text}: {source}");
        error = source;
    }
    text
}

impl Error for ClientError {}

impl From<reqwest::Error> for ClientError {
    fn from(error: reqwest::Error) -> Self {
        Self::Unreachable(error)
    }
}
