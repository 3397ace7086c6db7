//! The customer of the caller's token.

use anyhow::Result;
use assay_auth::anonymous;
use tonic::Code;

use crate::world::Identity;

#[tokio::test]
async fn the_current_customer_is_that_of_the_token_with_its_groups() -> Result<()> {
    let identity = Identity::new().await?;
    let (own, other) = (identity.customer("own").await?, identity.customer("other").await?);
    let account = identity.account("grace@example.com").await?;
    identity.membership(own, account, "Login").await?;
    identity.membership(other, identity.account("alan@example.com").await?, "Login").await?;

    let caller = identity.caller_of("grace@example.com").await?;
    let customer = identity.customers().get_current_customer(caller.call(())).await?.into_inner();
    assert_eq!(customer.id, own.to_string());
    assert_eq!((customer.subdomain.as_str(), customer.currency.as_str()), ("own", "EUR"));
    assert_eq!((customer.data_version.as_str(), customer.archived), ("1", false));
    let [group] = &customer.user_groups[..] else { panic!("{:?}", customer.user_groups) };
    assert!(group.name.starts_with("Group"));
    assert_eq!(group.usage_permission, "Login");
    assert_eq!(group.data_version.as_deref(), Some("1"));
    Ok(())
}

#[tokio::test]
async fn the_current_customer_needs_a_token() -> Result<()> {
    let identity = Identity::new().await?;
    let status = identity.customers().get_current_customer(anonymous(())).await.unwrap_err();
    assert_eq!(status.code(), Code::Unauthenticated);
    Ok(())
}
