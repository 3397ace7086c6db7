//! Names of the interface: a misspelt one does not compile. A test compares them with the documentation.

use std::fmt;

use serde::Deserialize;

/// Declares enums of names of the interface.
macro_rules! names {
    ($($(#[$doc:meta])* $type:ident { $($name:ident),+ $(,)? })+) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
        pub(crate) enum $type {
            $($name,)+
            /// None, or one that this console does not know.
            #[default]
            #[serde(other)]
            Unknown,
        }

        impl $type {
            #[cfg(test)]
            pub(crate) const NAMES: &'static [&'static str] = &[$(stringify!($name)),+];

            /// Returns the name in the interface.
            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)+
                    Self::Unknown => "",
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    )+ };
}

names! {
    /// The status of an execution.
    ExecutionStatus { Queued, Running, Completed, Canceled }

    /// The status of a test report.
    ReportStatus {
        NotExecuted, Running, InReview, Investigation, Accepted, Rejected, EngineExecutionFailure, Canceled,
    }

    /// The difference of a result from those before it.
    ResultChange { None, New, Still, Fixed, Flaky, CauseChanged }

    /// Whether an execution meets the rules of its test set.
    VerdictState { Pending, Passed, Failed }

    /// How a test case takes part in executions.
    State { Enabled, Muted, Skipped }

    /// The subject of an incident.
    IncidentKind { Outage, Cause }

    /// The measure of a monitor.
    MonitorMeasure { PassOnRetry, Recoveries, FailureRate, Duration }

    /// The action of a monitor on a test case.
    AlarmAction { Mute, Skip, Notify }

    /// An action that a monitor has taken.
    MonitorActionKind { Muted, Skipped, Notified, Recovered, Broken }

    /// A permission of a user.
    Permission { Read, Write, Execute, Accept, Reject, ExecutionTimes, Invoicing }
}

impl ExecutionStatus {
    /// Returns whether the execution has not ended.
    pub(crate) fn is_running(self) -> bool {
        matches!(self, Self::Queued | Self::Running)
    }
}

impl ReportStatus {
    /// Returns whether the test has ended, so that its result can be judged.
    pub(crate) fn is_finished(self) -> bool {
        !matches!(self, Self::NotExecuted | Self::Running)
    }

    /// Returns whether it is the judgement of a reviewer.
    pub(crate) fn is_judged(self) -> bool {
        matches!(self, Self::Accepted | Self::Rejected | Self::Investigation)
    }

    /// Returns what readers call it.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::NotExecuted => "Not executed",
            Self::InReview => "To review",
            Self::EngineExecutionFailure => "Engine failure",
            other => other.name(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;
    use crate::record::Outcome;

    #[test]
    fn names_are_those_of_the_documentation() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
        let document: Value =
            serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        let results = Outcome::EACH.map(Outcome::name);
        for (schema, names) in [
            ("ExecutionStatus", ExecutionStatus::NAMES),
            ("ReportStatus", ReportStatus::NAMES),
            ("ResultChange", ResultChange::NAMES),
            ("VerdictState", VerdictState::NAMES),
            ("CaseState", State::NAMES),
            ("IncidentKind", IncidentKind::NAMES),
            ("MonitorMeasure", MonitorMeasure::NAMES),
            ("AlarmAction", AlarmAction::NAMES),
            ("MonitorActionKind", MonitorActionKind::NAMES),
            ("TestResult", &results[..]),
        ] {
            let documented = document["components"]["schemas"][schema]["enum"].as_array().unwrap();
            let documented: BTreeSet<_> = documented.iter().filter_map(Value::as_str).collect();
            assert_eq!(names.iter().copied().collect::<BTreeSet<_>>(), documented, "{schema}");
        }
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/permissions.md");
        let documented = std::fs::read_to_string(file).unwrap();
        for permission in Permission::NAMES {
            assert!(documented.contains(permission), "{permission}");
        }
    }

    #[test]
    fn a_name_is_read_as_it_is_written_and_others_are_unknown() {
        for name in ReportStatus::NAMES {
            let status: ReportStatus = serde_json::from_value(Value::from(*name)).unwrap();
            assert_eq!(status.name(), *name);
        }
        let other: ReportStatus = serde_json::from_value(Value::from("Postponed")).unwrap();
        assert_eq!((other, other.is_judged()), (ReportStatus::Unknown, false));
    }
}
