//! Advice for the users of agents and clients that were made for other servers.

use http::StatusCode;

/// Returns what the user of an agent or a client has to do, as the end of a message. They see nothing
/// else of a refusal.
pub(super) fn remedy(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED => {
            "; use an API token of Assay, which its console creates below Account, API tokens"
        }
        StatusCode::FORBIDDEN => {
            "; use an API token with this permission: agents need Read, Write and Execute"
        }
        _ => "",
    }
}
