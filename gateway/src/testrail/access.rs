//! The permissions that methods need, which are decided before anything else.

use assay_proto::{Needs, Permission, Permissions};

use super::call::Call;
use crate::problem::Problem;

/// The needs of most methods: they number records and return them.
const REPORT: Needs =
    Needs::Permissions { one_of: &[Permission::Execute], all_of: &[Permission::Read] };

/// The needs of methods that also change test cases.
const WRITE: Needs = Needs::Permissions {
    one_of: &[Permission::Execute],
    all_of: &[Permission::Read, Permission::Write],
};

/// Fails if a caller with these permissions may not call a method.
pub(super) fn check(call: &Call, held: Permissions) -> Result<(), Problem> {
    let needs = match call.method() {
        "add_case" | "update_case" => WRITE,
        _ => REPORT,
    };
    Ok(needs.check(held)?)
}
