//! Which of its customers an account works for.

use assay_proto::Fault;

use super::Membership;

/// Chooses the membership to log in with: that of the customer with the `subdomain`, else the first.
pub(crate) fn choose(
    memberships: Vec<Membership>,
    subdomain: Option<&str>,
) -> Result<Membership, Fault> {
    if memberships.is_empty() {
        return Err(Fault::Unauthenticated);
    }
    let mut open: Vec<_> = memberships.into_iter().filter(Membership::may_log_in).collect();
    let named = open.iter().position(|one| Some(one.subdomain.as_str()) == subdomain);
    if open.is_empty() {
        return Err(Fault::Forbidden("this needs the permission Login".to_owned()));
    }
    Ok(open.swap_remove(named.unwrap_or_default()))
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
    fn the_host_chooses_the_customer_and_else_the_order() {
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
    fn without_the_permission_login_there_is_no_login() {
        let closed = vec![membership("a", "Read")];
        assert!(matches!(choose(closed, None), Err(Fault::Forbidden(_))));
        assert!(matches!(choose(Vec::new(), None), Err(Fault::Unauthenticated)));
    }
}
