//! Exchange of a token for one of another customer.

use anyhow::Result;
use assay_auth::anonymous;
use assay_proto::{CustomerId, Permission, identity::RefineRequest};
use tonic::Code;

use crate::world::{ADMIN, Identity};

#[tokio::test]
async fn a_member_of_two_customers_can_switch_between_them() -> Result<()> {
    let identity = Identity::new().await?;
    let (first, second) = (identity.customer("first").await?, identity.customer("second").await?);
    let account = identity.account("grace@example.com").await?;
    identity.membership(first, account, "Login, Read").await?;
    let user = identity.membership(second, account, "Login, Write").await?;

    let caller = identity.caller_of("grace@example.com").await?;
    let token = identity.refine(&caller, &second.to_string()).await?;
    let refined = identity.caller(&token).await?;
    assert_eq!((refined.customer, refined.user), (second, user));
    assert_eq!(refined.permissions.to_string(), "Login, Write");

    let next_login = identity.caller_of("grace@example.com").await?;
    assert_eq!(next_login.customer, second, "the last used customer");
    Ok(())
}

#[tokio::test]
async fn foreign_and_unknown_customers_get_the_same_error() -> Result<()> {
    let identity = Identity::new().await?;
    let (own, foreign) = (identity.customer("own").await?, identity.customer("foreign").await?);
    let (shut, closed) = (identity.customer("shut").await?, identity.customer("closed").await?);
    let account = identity.account("grace@example.com").await?;
    identity.membership(own, account, "Login, UserManagement").await?;
    identity.membership(shut, account, "Read").await?;
    identity.membership(closed, account, "Login").await?;
    identity.set(closed, "archived = true").await?;

    let caller = identity.caller_of("grace@example.com").await?;
    let mut seen = Vec::new();
    for customer in [foreign, shut, closed, CustomerId::new()] {
        let status = identity.refine(&caller, &customer.to_string()).await.unwrap_err();
        assert_eq!(status.code(), Code::PermissionDenied);
        seen.push((status.message().to_owned(), status.details().to_vec()));
    }
    seen.dedup();
    assert_eq!(seen.len(), 1, "{seen:?}");
    Ok(())
}

#[tokio::test]
async fn a_customer_manager_can_switch_to_any_customer_with_the_same_permissions() -> Result<()> {
    let identity = Identity::new().await?;
    let customer = identity.customer("acme").await?;
    let caller = identity.caller_of(ADMIN).await?;

    let visitor = identity.caller(&identity.refine(&caller, &customer.to_string()).await?).await?;
    assert_eq!((visitor.customer, visitor.user), (customer, caller.user));
    assert_eq!(visitor.permissions, caller.permissions);

    let home = identity.refine(&visitor, &caller.customer.to_string()).await?;
    assert_eq!(identity.caller(&home).await?.customer, caller.customer);
    let next_login = identity.caller_of(ADMIN).await?;
    assert_eq!(next_login.customer, caller.customer);
    Ok(())
}

#[tokio::test]
async fn a_customer_manager_with_a_membership_has_the_permissions_of_the_membership() -> Result<()>
{
    let identity = Identity::new().await?;
    let customer = identity.customer("acme").await?;
    let caller = identity.caller_of(ADMIN).await?;
    identity.membership(customer, identity.account_of(caller.user).await?, "Login, Read").await?;

    let member = identity.caller(&identity.refine(&caller, &customer.to_string()).await?).await?;
    assert_eq!(member.permissions.to_string(), "Login, Read");
    assert!(!member.may(Permission::CustomerManagement));
    Ok(())
}

#[tokio::test]
async fn an_unknown_customer_is_invalid_for_a_customer_manager() -> Result<()> {
    let identity = Identity::new().await?;
    let caller = identity.caller_of(ADMIN).await?;
    let archived = identity.customer("archived").await?;
    identity.set(archived, "archived = true").await?;
    let deleted = identity.customer("deleted").await?;
    identity.set(deleted, "deleted_at = now()").await?;

    let unknown = [archived, deleted, CustomerId::new()].map(|id| id.to_string());
    for customer in unknown.iter().map(String::as_str).chain(["", "0", "no uuid"]) {
        let status = identity.refine(&caller, customer).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument, "{customer}");
        assert!(status.message().starts_with("CustomerId: "), "{status}");
    }
    Ok(())
}

#[tokio::test]
async fn switching_customers_needs_a_token() -> Result<()> {
    let identity = Identity::new().await?;
    let request = RefineRequest { customer_id: CustomerId::new().to_string() };
    let status = identity.tokens().refine(anonymous(request)).await.unwrap_err();
    assert_eq!(status.code(), Code::Unauthenticated);
    Ok(())
}
