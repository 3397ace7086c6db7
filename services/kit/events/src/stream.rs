//! JetStream streams of services.

/// The JetStream stream of one service's events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream(&'static str);

impl Stream {
    /// The stream of a service, such as `catalog`: stream `ASSAY_CATALOG` with all subjects that
    /// begin with `assay.catalog`.
    pub const fn of(service: &'static str) -> Self {
        Self(service)
    }

    pub(crate) fn service(self) -> &'static str {
        self.0
    }

    /// Returns the name of the stream in JetStream.
    pub fn name(self) -> String {
        format!("ASSAY_{}", self.0.to_ascii_uppercase().replace('-', "_"))
    }

    /// Returns the filter of all subjects of the stream.
    pub fn subjects(self) -> String {
        format!("assay.{}.>", self.0)
    }
}
