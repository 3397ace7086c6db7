//! Rules for share links.

use assay_proto::{Fault, Timestamp, execution::ShareLinkInput};

/// Default and maximum lifetime of a share link, in days.
pub(super) const DEFAULT: i32 = 30;
pub(super) const LONGEST: i32 = 90;

/// Maximum number of share links of an execution.
pub(super) const MOST: i64 = 100;

/// Returns the time when a new share link expires. `default` and `latest` are counted from now.
pub(super) fn check_end(
    input: ShareLinkInput,
    default: Timestamp,
    latest: Timestamp,
) -> Result<Timestamp, Fault> {
    let now = latest.0 - chrono::TimeDelta::days(LONGEST.into());
    match input.expires_at {
        None => Ok(default),
        Some(time) if time.0 <= now => Err(Fault::invalid("ExpiresAt", "must be in the future")),
        Some(time) if time > latest => {
            Err(Fault::invalid("ExpiresAt", format!("must be at most {LONGEST} days from now")))
        }
        Some(time) => Ok(time),
    }
}
