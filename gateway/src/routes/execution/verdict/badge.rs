//! Verdicts as badges.

use assay_proto::execution::VerdictState;

use super::markdown;

/// A badge for the documentation.
pub(in crate::routes) const EXAMPLE: &str = r##"<svg xmlns="http://www.w3.org/2000/svg" width="92" height="20" role="img" aria-label="tests: passed"><title>tests: passed</title><rect width="38" height="20" fill="#444"/><rect x="38" width="54" height="20" fill="#1a7f4b"/><g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11"><text x="19" y="14">tests</text><text x="65" y="14">passed</text></g></svg>"##;

/// Returns a badge with the state. It has no text of the customer.
pub(in crate::routes) fn of(state: VerdictState) -> String {
    let color = match state {
        VerdictState::Passed => "#1a7f4b",
        VerdictState::Failed => "#b4232a",
        VerdictState::Pending | VerdictState::Unspecified => "#8a5a00",
    };
    let state = markdown::name_of(state);
    let (left, right) = (38, 12 + 7 * state.len());
    let (width, middle) = (left + right, left + right / 2);
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" aria-label="tests: {state}"><title>tests: {state}</title><rect width="{left}" height="20" fill="#444"/><rect x="{left}" width="{right}" height="20" fill="{color}"/><g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11"><text x="19" y="14">tests</text><text x="{middle}" y="14">{state}</text></g></svg>"##
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_badge_shows_the_state() {
        assert_eq!(of(VerdictState::Passed), EXAMPLE);
        assert!(of(VerdictState::Failed).contains("#b4232a"));
    }
}
