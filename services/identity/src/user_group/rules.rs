//! What makes a user group, who may grant what, and which groups a customer starts with.

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

/// The names and permissions of a new customer's groups. Only the operator's administrators manage
/// customers.
pub(crate) fn first_groups(is_operator: bool) -> [(&'static str, Permissions); 3] {
    let own = all().filter(|one| is_operator || *one != Permission::CustomerManagement);
    [
        (ADMINISTRATORS, own.collect()),
        ("Testers", TESTERS.into_iter().collect()),
        ("Viewers", VIEWERS.into_iter().collect()),
    ]
}

/// Checks a group, and puts its permissions in order.
pub(super) fn valid(input: UserGroupInput) -> Result<UserGroupInput, Fault> {
    let mut check = Check::default();
    check.name_on_one_line("Name", &input.name);
    check.text("Description", input.description.as_deref().unwrap_or_default());
    let permissions = Permissions::parse("UsagePermission", &input.usage_permission);
    let permissions = check.read(permissions)?.unwrap_or_default();
    check.done()?;
    Ok(UserGroupInput { usage_permission: permissions.to_string(), ..input })
}

/// Nobody grants a permission that they lack; what was granted before may stay.
pub(crate) fn may_grant(
    caller: &Caller,
    wanted: Permissions,
    before: Permissions,
) -> Result<(), Fault> {
    let lacking: Vec<String> = all()
        .filter(|one| wanted.contains(*one) && !before.contains(*one) && !caller.may(*one))
        .map(name_of)
        .collect();
    if lacking.is_empty() {
        return Ok(());
    }
    Err(Fault::Forbidden(format!("this needs the permission {} too", lacking.join(", "))))
}

fn all() -> impl Iterator<Item = Permission> {
    (1..).map_while(|number| Permission::try_from(number).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_operators_administrators_manage_customers() {
        let permissions = |is_operator: bool| first_groups(is_operator)[0].1;
        assert!(permissions(true).contains(Permission::CustomerManagement));
        assert!(!permissions(false).contains(Permission::CustomerManagement));
        for one in [Permission::Login, Permission::UserManagement, Permission::Reserved19] {
            assert!(permissions(true).contains(one) && permissions(false).contains(one));
        }
    }
}
