//! The list of the memberships of an account.

use anyhow::Result;
use assay_auth::Caller;
use assay_proto::{
    Batch as _, Page,
    identity::{ListMembershipsRequest, Membership},
};
use futures::TryStreamExt;
use tonic::{Code, Status};

use crate::{
    api_token,
    world::{ADMIN, Identity},
};

const GRACE: &str = "grace@example.com";

/// The memberships of the caller's account, without those after the requested page.
pub(crate) async fn memberships(identity: &Identity, caller: &Caller) -> Result<Vec<Membership>> {
    Ok(page_of(identity, caller, None).await?.0)
}

/// A page of the memberships, and the cursor of the next one.
async fn page_of(
    identity: &Identity,
    caller: &Caller,
    page: Option<Page>,
) -> Result<(Vec<Membership>, Option<String>), Status> {
    let request = caller.call(ListMembershipsRequest { page });
    let list = identity.users().list_memberships(request).await?.into_inner();
    let batches: Vec<_> = list.try_collect().await?;
    let next = batches.last().and_then(|batch| batch.next_cursor.clone());
    Ok((batches.into_iter().flat_map(|batch| batch.parse().unwrap()).collect(), next))
}

fn names(memberships: &[Membership]) -> Vec<&str> {
    memberships.iter().map(|membership| membership.customer_name.as_str()).collect()
}

#[tokio::test]
async fn memberships_are_listed_by_customer_with_their_last_use() -> Result<()> {
    let identity = Identity::new().await?;
    let grace = identity.account(GRACE).await?;
    let alan = identity.account("alan@example.com").await?;
    for subdomain in ["zoo", "acme", "moon"] {
        let customer = identity.customer(subdomain).await?;
        identity.membership(customer, grace, "Login, Read").await?;
        identity.membership(customer, alan, "Login, UserManagement").await?;
    }
    let foreign = identity.customer("foreign").await?;
    identity.membership(foreign, alan, "Login").await?;
    let archived = identity.customer("archived").await?;
    identity.membership(archived, grace, "Login").await?;
    identity.set(archived, "archived = true").await?;
    sqlx::query("update customer set name = initcap(name) where subdomain = 'moon'")
        .execute(&identity.db)
        .await?;

    let caller = identity.caller_of(GRACE).await?;
    let before = memberships(&identity, &caller).await?;
    assert_eq!(names(&before), ["acme", "Moon", "zoo"]);
    let zoo = before.last().expect("the membership of the zoo");
    assert_eq!((zoo.subdomain.as_str(), zoo.usage_permission.as_str()), ("zoo", "Login, Read"));
    assert!(zoo.user_group_name.as_ref().is_some_and(|name| name.starts_with("Group ")), "{zoo:?}");
    for membership in &before {
        let is_current = membership.customer_id == caller.customer.to_string();
        assert_eq!(membership.current, is_current, "{membership:?}");
        assert_eq!(membership.last_used_at.is_some(), is_current, "{membership:?}");
        assert!(!membership.pending, "{membership:?}");
    }

    let other = before.iter().find(|membership| !membership.current).expect("another customer");
    let refined = identity.refine(&caller, &other.customer_id).await?;
    let refined = identity.caller(&refined).await?;
    let after = memberships(&identity, &refined).await?;
    let current: Vec<_> = after.iter().filter(|membership| membership.current).collect();
    assert_eq!(current.iter().map(|one| &one.id).collect::<Vec<_>>(), [&other.id]);
    assert!(current[0].last_used_at.is_some());
    Ok(())
}

#[tokio::test]
async fn memberships_are_read_in_pages_and_found_by_the_name_of_the_customer() -> Result<()> {
    let identity = Identity::new().await?;
    let grace = identity.account(GRACE).await?;
    for subdomain in ["d", "a", "c", "b", "e"] {
        let customer = identity.customer(subdomain).await?;
        identity.membership(customer, grace, "Login").await?;
    }
    // Customers with the same name keep their order across pages.
    sqlx::query("update customer set name = 'Same' where subdomain in ('b', 'c')")
        .execute(&identity.db)
        .await?;
    let caller = identity.caller_of(GRACE).await?;
    let (mut seen, mut cursor) = (Vec::new(), None);
    for expected in [2, 2, 1] {
        let page = Page { limit: Some(2), cursor, q: None };
        let (memberships, next) = page_of(&identity, &caller, Some(page)).await?;
        assert_eq!(memberships.len(), expected);
        seen.extend(memberships);
        cursor = next;
    }
    assert_eq!((names(&seen), cursor), (vec!["a", "d", "e", "Same", "Same"], None));
    assert_eq!(seen, memberships(&identity, &caller).await?);

    let page = Page { q: Some("sAM".to_owned()), ..Page::default() };
    assert_eq!(names(&page_of(&identity, &caller, Some(page)).await?.0), ["Same", "Same"]);
    let admin = identity.caller_of(ADMIN).await?;
    let foreign = seen[0].id.as_str();
    for cursor in [foreign, "01890a5d-ac96-774b-bcce-b302099a8057", "nonsense"] {
        let page = Page { limit: Some(2), cursor: Some(cursor.to_owned()), q: None };
        let refused = page_of(&identity, &admin, Some(page)).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{cursor}");
    }
    Ok(())
}

#[tokio::test]
async fn an_invitation_is_marked_and_reveals_neither_group_nor_use() -> Result<()> {
    let identity = Identity::new().await?;
    let (first, second) = (identity.visitor("first").await?, identity.visitor("second").await?);
    let member = identity.member(&first, GRACE, "Testers").await?;
    let invited = identity.user(&second, GRACE, "Viewers").await?;
    let [own, pending] = &memberships(&identity, &member).await?[..] else {
        panic!("expected a membership and an invitation")
    };
    assert_eq!((own.pending, own.user_group_name.as_deref()), (false, Some("Testers")));
    assert_eq!((&pending.id, pending.pending, pending.current), (&invited.id, true, false));
    assert_eq!((pending.user_group_name.as_deref(), pending.last_used_at), (None, None));
    let refused = identity.refine(&member, &pending.customer_id).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied, "the invitation grants nothing");

    // The administrator, who works for a customer without a membership, sees the own one only.
    let [home] = &memberships(&identity, &second).await?[..] else {
        panic!("expected the membership of the operator")
    };
    assert_eq!((home.id.clone(), home.current), (second.user.to_string(), false));
    Ok(())
}

#[tokio::test]
async fn an_api_token_lists_the_membership_of_its_own_customer_only() -> Result<()> {
    let identity = Identity::new().await?;
    let (home, other) = (identity.visitor("home").await?, identity.visitor("other").await?);
    let member = identity.member(&home, GRACE, "Testers").await?;
    identity.member(&other, GRACE, "Testers").await?;
    assert_eq!(memberships(&identity, &member).await?.len(), 2);
    let secret = api_token::create(&identity, &member, "Read", None).await?.secret;
    let machine = api_token::exchange(&identity, &secret).await?;
    let [own] = &memberships(&identity, &machine).await?[..] else {
        panic!("expected the membership of the token")
    };
    assert_eq!((own.id.clone(), own.current), (member.user.to_string(), true));
    Ok(())
}
