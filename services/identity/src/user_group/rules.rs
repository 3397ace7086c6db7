//! Which groups a customer starts with.

use assay_proto::{Permission, Permissions};

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
    let all = (1..).map_while(|number| Permission::try_from(number).ok());
    let own = all.filter(|one| is_operator || *one != Permission::CustomerManagement);
    [
        (ADMINISTRATORS, own.collect()),
        ("Testers", TESTERS.into_iter().collect()),
        ("Viewers", VIEWERS.into_iter().collect()),
    ]
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
