//! Rules for user groups and their permissions, and the groups of a new customer.

use assay_auth::Caller;
use assay_proto::{Fault, Permission, Permissions, identity::UserGroupInput, name_of};
use assay_records::Check;

/// The group whose members manage the others.
pub(crate) const ADMINISTRATORS: &str = "Administrators";

const TESTERS: [Permission; 7] = [
    Permission::Login,
    Permission::Read,
    Permission::Write,
    Permission::Execute,
    Permission::Accept,
    Permission::Reject,
    Permission::UserSettings,
];

const VIEWERS: [Permission; 3] = [Permission::Login, Permission::Read, Permission::UserSettings];

/// Returns the names and permissions of a new customer's groups. Only administrators of the
/// operator may manage customers.
pub(crate) fn first_groups(is_operator: bool) -> [(&'static str, Permissions); 3] {
    let permissions = all().filter(|one| is_operator || *one != Permission::CustomerManagement);
    [
        (ADMINISTRATORS, permissions.collect()),
        ("Testers", TESTERS.into_iter().collect()),
        ("Viewers", VIEWERS.into_iter().collect()),
    ]
}

/// Checks a group, and sorts its permissions.
pub(super) fn valid(input: UserGroupInput) -> Result<UserGroupInput, Fault> {
    let mut check = Check::default();
    check.name_on_one_line("Name", &input.name);
    check.text("Description", input.description.as_deref().unwrap_or_default());
    let permissions = Permissions::parse("UsagePermission", &input.usage_permission);
    let permissions = check.read(permissions)?.unwrap_or_default();
    check.done()?;
    Ok(UserGroupInput { usage_permission: permissions.to_string(), ..input })
}

/// Checks that the caller has all permissions that a change adds.
pub(crate) fn check_may_grant(
    caller: &Caller,
    after: Permissions,
    before: Permissions,
) -> Result<(), Fault> {
    let missing: Vec<String> = all()
        .filter(|one| after.contains(*one) && !before.contains(*one) && !caller.may(*one))
        .map(name_of)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Fault::Forbidden(format!(
        "you cannot grant permissions that you do not have: {}",
        missing.join(", ")
    )))
}

fn all() -> impl Iterator<Item = Permission> {
    (1..).map_while(|number| Permission::try_from(number).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_administrators_of_the_operator_manage_customers() {
        let permissions = |is_operator: bool| first_groups(is_operator)[0].1;
        assert!(permissions(true).contains(Permission::CustomerManagement));
        assert!(!permissions(false).contains(Permission::CustomerManagement));
        for one in [Permission::Login, Permission::UserManagement, Permission::Reserved19] {
            assert!(permissions(true).contains(one) && permissions(false).contains(one));
        }
    }
}
