//! Points in time.

use chrono::{DateTime, Utc};

pub(crate) type Time = DateTime<Utc>;
