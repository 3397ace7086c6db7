//! The shapes of systems.

/// The shape of a system: its processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Shape {
    /// The monolith
    Baseline,
    /// The monolith in two processes with gRPC in between; answers reads only
    Line,
    /// Assay in one process
    One,
    /// Assay as five processes
    Five,
    /// Assay as five processes with two replicas each
    Replicas,
}

impl Shape {
    /// Whether a system of this shape is Assay.
    pub(crate) fn is_assay(self) -> bool {
        !matches!(self, Self::Baseline | Self::Line)
    }

    /// The name in tables.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Line => "line",
            Self::One => "one process",
            Self::Five => "five processes",
            Self::Replicas => "two replicas",
        }
    }
}
