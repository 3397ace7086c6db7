//! The choice of a membership at login.

use assay_proto::Fault;

use super::Membership;

/// Chooses the membership of the customer with the `subdomain`, otherwise the first one.
pub(crate) fn choose(
    memberships: Vec<Membership>,
    subdomain: Option<&str>,
) -> Result<Membership, Fault> {
    if memberships.is_empty() {
        return Err(Fault::Unauthenticated);
    }
    let mut usable: Vec<_> = memberships.into_iter().filter(Membership::may_log_in).collect();
    let named = usable.iter().position(|one| Some(one.subdomain.as_str()) == subdomain);
    if usable.is_empty() {
        return Err(Fault::Forbidden("this needs the permission Login".to_owned()));
    }
    Ok(usable.swap_remove(named.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use assay_proto::{CustomerId, UserId};

    use super::*;

    fn membership(subdomain: &str, permissions: &str) -> Membership {
        Membership {
            customer_id: CustomerId::new(),
            id: UserId::new(),
            subdomain: subdomain.to_owned(),
            display_name: "Ada".to_owned(),
            usage_permission: permissions.to_owned(),
        }
    }

    #[test]
    fn the_subdomain_takes_precedence_over_the_order() {
        let memberships = vec![
            membership("closed", "Read"),
            membership("recent", "Login, Read"),
            membership("older", "Login"),
        ];
        for (subdomain, chosen) in [
            (Some("older"), "older"),
            (Some("recent"), "recent"),
            (Some("closed"), "recent"),
            (Some("elsewhere"), "recent"),
            (None, "recent"),
        ] {
            assert_eq!(choose(memberships.clone(), subdomain).unwrap().subdomain, chosen);
        }
    }

    #[test]
    fn a_login_requires_the_permission_login() {
        let closed = vec![membership("a", "Read")];
        assert!(matches!(choose(closed, None), Err(Fault::Forbidden(_))));
        assert!(matches!(choose(Vec::new(), None), Err(Fault::Unauthenticated)));
    }
}
