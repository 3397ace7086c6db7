//! Event streams that the service publishes and consumes.

use assay_events::Stream;

/// Stream of published notifications. No service consumes it, so a notification never causes
/// another one.
pub(crate) const NOTIFICATIONS: Stream = Stream::of("notifications");

/// Streams whose events become notifications.
pub(crate) const SOURCES: [Stream; 3] =
    [Stream::of("catalog"), Stream::of("execution"), Stream::of("identity")];
