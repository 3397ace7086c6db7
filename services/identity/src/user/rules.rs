//! Rules for users and for changes of them.

use std::borrow::Cow;

use assay_auth::Caller;
use assay_proto::{
    Fault, Permissions, UserGroupId,
    identity::{User, UserInput},
};
use assay_records::Check;

use crate::{account, user_group};

/// Checks a user, and removes white space around the email address. Returns the id of the group as
/// well.
pub(super) fn valid(input: UserInput) -> Result<(UserInput, UserGroupId), Fault> {
    let mut check = Check::default();
    check.name_on_one_line("DisplayName", &input.display_name);
    let email = check.read(account::rules::email("Email", &input.email))?;
    let group = match &input.user_group {
        Some(group) => UserGroupId::from_field("UserGroup/Id", &group.id),
        None => Err(Fault::invalid("UserGroup", "is required")),
    };
    let group = check.read(group)?;
    let valid = email.map(Cow::into_owned).zip(group);
    check.done()?;
    let (email, group) =
        valid.ok_or_else(|| Fault::internal("invalid user without a violation"))?;
    Ok((UserInput { email, ..input }, group))
}

pub(super) fn unknown_group() -> Fault {
    Fault::invalid("UserGroup/Id", "no such user group")
}

pub(super) fn shared_email() -> Fault {
    Fault::Conflict {
        code: "email_of_other_customers",
        reason: "the email address cannot be changed, because the account belongs to other \
                 customers as well; invite the new address as another user"
            .to_owned(),
    }
}

/// Returns the id of the user's group.
pub(super) fn group(user: &User) -> Option<UserGroupId> {
    UserGroupId::from_field("UserGroup", &user.user_group.as_ref()?.id).ok()
}

/// Checks that the caller has all permissions of a user whose email address changes: the new
/// mailbox gets them.
pub(super) fn check_may_change_email(caller: &Caller, user: &User) -> Result<(), Fault> {
    let permissions = user_group::permissions(&user.usage_permission)?;
    user_group::rules::check_may_grant(caller, permissions, Permissions::default())
}

/// Rejects API tokens, which must not join other customers.
pub(super) fn reject_api_tokens(caller: &Caller) -> Result<(), Fault> {
    if caller.api_token.is_none() {
        return Ok(());
    }
    Err(Fault::Forbidden(
        "API tokens are valid for one customer only; log in with a password".to_owned(),
    ))
}

/// Returns the user of a caller who works for a customer without a membership.
pub(super) fn visitor(caller: &Caller, email: String) -> User {
    User {
        id: caller.user.to_string(),
        email,
        display_name: caller.name.to_string(),
        usage_permission: caller.permissions.to_string(),
        data_version: "0".to_owned(),
        ..User::default()
    }
}

#[cfg(test)]
mod tests {
    use assay_proto::Reference;

    use super::*;

    #[test]
    fn all_violations_of_a_user_are_reported_together() {
        let wrong = UserInput {
            email: "nobody".into(),
            display_name: " ".into(),
            user_group: Some(Reference { id: "0".into() }),
        };
        let fields = |input| match valid(input) {
            Err(Fault::Invalid(violations)) => {
                violations.into_iter().map(|violation| violation.field).collect::<Vec<_>>()
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(fields(wrong), ["DisplayName", "Email", "UserGroup/Id"]);
        assert_eq!(fields(UserInput::default()), ["DisplayName", "Email", "UserGroup"]);
    }
}
