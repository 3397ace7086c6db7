//! What makes a user, and who may change what of one.

use assay_auth::Caller;
use assay_proto::{
    Fault, Permissions, UserGroupId,
    identity::{User, UserInput},
};
use assay_records::Check;

use crate::{account, user_group};

/// A user as a client may write it, checked.
#[derive(Debug)]
pub(super) struct Valid {
    pub(super) email: String,
    pub(super) display_name: String,
    pub(super) group: UserGroupId,
}

pub(super) fn valid(input: UserInput) -> Result<Valid, Fault> {
    let mut check = Check::default();
    check.name_on_one_line("DisplayName", &input.display_name);
    let email = check.read(account::rules::email("Email", &input.email))?;
    let group = match &input.user_group {
        Some(group) => UserGroupId::from_field("UserGroup/Id", &group.id),
        None => Err(Fault::invalid("UserGroup", "must name a user group")),
    };
    let group = check.read(group)?;
    let valid = email.map(ToOwned::to_owned).zip(group);
    check.done()?;
    let (email, group) =
        valid.ok_or_else(|| Fault::internal("a user is neither right nor wrong"))?;
    Ok(Valid { email, display_name: input.display_name, group })
}

pub(super) fn unknown_group() -> Fault {
    Fault::invalid("UserGroup/Id", "must be the id of a user group")
}

pub(super) fn shared_email() -> Fault {
    Fault::Conflict {
        code: "email_of_other_customers",
        reason: "the account belongs to other customers too, so its email cannot be changed here"
            .to_owned(),
    }
}

/// The id of the user's group.
pub(super) fn group(user: &User) -> Option<UserGroupId> {
    UserGroupId::from_field("UserGroup", &user.user_group.as_ref()?.id).ok()
}

/// Whoever changes an email can have the password reset, and so gets all that the user may do:
/// which has to be no more than they may do themselves.
pub(super) fn may_rename(caller: &Caller, user: &User) -> Result<(), Fault> {
    let permissions = user_group::permissions(&user.usage_permission)?;
    user_group::rules::may_grant(caller, permissions, Permissions::default())
}

/// What an account is elsewhere is no business of a customer's machine.
pub(super) fn refuse_machines(caller: &Caller) -> Result<(), Fault> {
    if caller.api_token.is_none() {
        return Ok(());
    }
    Err(Fault::Forbidden("an API token is for one customer".to_owned()))
}

/// A caller who works for a customer without being its member.
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
    fn all_that_is_wrong_with_a_user_is_told_at_once() {
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
