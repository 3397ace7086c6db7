//! Outcomes of attempts, and the health of the receiver that they show.

use std::time::Duration;

use reqwest::StatusCode;

use crate::exchange::Exchange;

/// Outcome of one attempt.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) status: Option<StatusCode>,
    /// The reason for the failure, unless the attempt succeeded.
    pub(crate) error: Option<String>,
    /// Delay that the receiver asked for with `Retry-After`, or zero.
    pub(crate) retry_after: Duration,
    pub(crate) exchange: Exchange,
}

impl Outcome {
    pub(crate) fn answered(status: u16) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let error = if status.is_success() {
            None
        } else if status.is_redirection() {
            Some(format!("the receiver answered {status}; redirects are not followed"))
        } else {
            Some(format!("the receiver answered {status}"))
        };
        Self { status: Some(status), error, ..Self::failed(String::new()) }
    }

    pub(crate) fn failed(error: String) -> Self {
        let (retry_after, exchange) = (Duration::ZERO, Exchange::default());
        Self { status: None, error: Some(error), retry_after, exchange }
    }

    /// Returns the outcome with its request and response.
    pub(crate) fn with(self, exchange: Exchange) -> Self {
        Self { exchange, ..self }
    }

    /// Returns the HTTP status of the response, if there was one.
    pub(crate) fn response_status(&self) -> Option<i32> {
        self.status.map(|status| i32::from(status.as_u16()))
    }

    pub(crate) fn is_success(&self) -> bool {
        self.error.is_none()
    }

    /// Returns whether the receiver asked to be sent nothing again.
    pub(crate) fn is_gone(&self) -> bool {
        self.status == Some(StatusCode::GONE)
    }
}

/// Health of a receiver, judged by the outcomes of one round so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    /// At least one attempt succeeded.
    Healthy,
    /// All attempts failed.
    Failing,
    /// The receiver answered 410 Gone.
    Gone,
}

impl Health {
    /// Returns the health after another outcome.
    pub(crate) fn after(self, outcome: &Outcome) -> Self {
        match self {
            Self::Gone => Self::Gone,
            _ if outcome.is_gone() => Self::Gone,
            _ if outcome.is_success() => Self::Healthy,
            health => health,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_success_makes_a_receiver_healthy_unless_it_is_gone() {
        let of = |statuses: &[u16]| {
            let outcomes: Vec<_> =
                statuses.iter().map(|&status| Outcome::answered(status)).collect();
            outcomes.iter().fold(Health::Failing, Health::after)
        };
        assert_eq!(of(&[500, 204, 404]), Health::Healthy);
        assert_eq!(of(&[500, 302]), Health::Failing);
        assert_eq!(of(&[200, 410]), Health::Gone);
    }
}
