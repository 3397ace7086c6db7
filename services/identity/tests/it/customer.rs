//! Management of customers.

use anyhow::Result;
use assay_auth::{Caller, anonymous};
use assay_proto::{
    Batch as _, CustomerId,
    identity::{
        CreateCustomerRequest, Customer, CustomerInput, DeleteCustomerRequest,
        FindDeletedCustomersRequest, GetCustomerRequest, ListCustomersRequest,
        UpdateCustomerRequest,
    },
};
use futures::TryStreamExt;
use tonic::{Code, Status};

use crate::world::{ADMIN, Identity, PASSWORD, customer_input, reason};

async fn create(identity: &Identity, caller: &Caller, subdomain: &str) -> Result<String, Status> {
    let request = CreateCustomerRequest { customer: Some(customer_input(subdomain)) };
    Ok(identity.customers().create_customer(caller.call(request)).await?.into_inner().id)
}

async fn archive(
    identity: &Identity,
    caller: &Caller,
    id: &str,
    archived: bool,
) -> Result<Customer, Status> {
    let request = UpdateCustomerRequest {
        id: id.to_owned(),
        data_version: None,
        changes: Some(CustomerInput { archived, ..CustomerInput::default() }),
        fields: vec!["Archived".to_owned()],
    };
    Ok(identity.customers().update_customer(caller.call(request)).await?.into_inner())
}

async fn delete(identity: &Identity, caller: &Caller, id: &str) -> Result<(), Status> {
    let request = DeleteCustomerRequest { id: id.to_owned() };
    identity.customers().delete_customer(caller.call(request)).await.map(drop)
}

async fn names(identity: &Identity, caller: &Caller, archived: bool) -> Result<Vec<String>> {
    let request = ListCustomersRequest { archived, page: None };
    let list = identity.customers().list_customers(caller.call(request)).await?.into_inner();
    let batches: Vec<_> = list.try_collect().await?;
    Ok(batches
        .into_iter()
        .flat_map(|batch| batch.parse().unwrap())
        .map(|one| one.subdomain)
        .collect())
}

#[tokio::test]
async fn services_find_the_customers_that_were_deleted_but_not_unknown_ones() -> Result<()> {
    let identity = Identity::new().await?;
    let caller = identity.caller_of(ADMIN).await?;
    let [kept, gone] = [create(&identity, &caller, "kept"), create(&identity, &caller, "gone")];
    let (kept, gone) = (kept.await?, gone.await?);
    delete(&identity, &caller, &gone).await?;
    let find = async |ids: Vec<String>| {
        let request = anonymous(FindDeletedCustomersRequest { ids });
        identity
            .customers()
            .find_deleted_customers(request)
            .await
            .map(|found| found.into_inner().ids)
    };
    let unknown = CustomerId::new().to_string();
    assert_eq!(find(vec![kept, gone.clone(), unknown.clone()]).await?, [gone]);
    let refused = find(vec![unknown; 1001]).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    Ok(())
}

#[tokio::test]
async fn a_new_customer_has_its_groups_and_is_listed_first() -> Result<()> {
    let identity = Identity::new().await?;
    let caller = identity.caller_of(ADMIN).await?;
    let id = create(&identity, &caller, "Acme").await?;

    let request = GetCustomerRequest { id };
    let customer = identity.customers().get_customer(caller.call(request)).await?.into_inner();
    assert_eq!((customer.subdomain.as_str(), customer.currency.as_str()), ("acme", "EUR"));
    let groups: Vec<_> = customer.user_groups.iter().map(|group| group.name.as_str()).collect();
    assert_eq!(groups, ["Administrators", "Testers", "Viewers"]);
    assert!(!customer.user_groups[0].usage_permission.contains("CustomerManagement"));
    assert_eq!(names(&identity, &caller, false).await?, ["acme", "operator"]);
    Ok(())
}

#[tokio::test]
async fn a_subdomain_is_unique_among_customers() -> Result<()> {
    let identity = Identity::new().await?;
    let caller = identity.caller_of(ADMIN).await?;
    let first = create(&identity, &caller, "acme").await?;
    let duplicate = create(&identity, &caller, "ACME").await.unwrap_err();
    assert_eq!(duplicate.code(), Code::AlreadyExists);
    let other = create(&identity, &caller, "other").await?;
    let request = UpdateCustomerRequest {
        id: other,
        data_version: None,
        changes: Some(customer_input("ACME")),
        fields: vec!["Subdomain".to_owned()],
    };
    let duplicate = identity.customers().update_customer(caller.call(request)).await.unwrap_err();
    assert_eq!(duplicate.code(), Code::AlreadyExists);
    delete(&identity, &caller, &first).await?;
    create(&identity, &caller, "acme").await?;
    Ok(())
}

#[tokio::test]
async fn invalid_customers_are_rejected_with_their_fields() -> Result<()> {
    let identity = Identity::new().await?;
    let caller = identity.caller_of(ADMIN).await?;
    for (name, subdomain, field) in [
        ("A", "", "Subdomain"),
        ("A", "a.b", "Subdomain"),
        ("A", "-", "Subdomain"),
        ("A", "www", "Subdomain"),
        (" ", "a", "Name"),
        (&"a".repeat(256), "a", "Name"),
        ("\0", "a", "Name"),
    ] {
        let (name, subdomain) = (name.to_owned(), subdomain.to_owned());
        let customer = CustomerInput { name, subdomain, ..CustomerInput::default() };
        let request = CreateCustomerRequest { customer: Some(customer) };
        let refused = identity.customers().create_customer(caller.call(request)).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{field}");
        assert!(refused.message().starts_with(&format!("{field}: ")), "{refused}");
    }
    let unknown = assay_proto::CustomerId::new().to_string();
    let upper = caller.customer.to_string().to_uppercase();
    for id in [unknown.as_str(), &upper, "0", "operator", "\0", "../"] {
        let request = caller.call(GetCustomerRequest { id: id.to_owned() });
        for refused in [
            identity.customers().get_customer(request).await.map(drop).unwrap_err(),
            archive(&identity, &caller, id, true).await.map(drop).unwrap_err(),
            delete(&identity, &caller, id).await.unwrap_err(),
        ] {
            assert_eq!(refused.code(), Code::NotFound, "{id:?}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn archiving_a_customer_revokes_tokens_and_prevents_logins_until_it_is_unarchived()
-> Result<()> {
    let identity = Identity::new().await?;
    let operator = identity.caller_of(ADMIN).await?;
    let visitor = identity.visitor("acme").await?;
    let member = identity.member(&visitor, "grace@example.com", "Testers").await?;
    let id = visitor.customer.to_string();

    let archived = archive(&identity, &operator, &id, true).await?;
    assert!(archived.archived);
    let refused = identity.login("grace@example.com", PASSWORD).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated);
    assay_testkit::eventually("the tokens are revoked", async || {
        (!identity.accepts(&member).await && !identity.accepts(&visitor).await).then_some(())
    })
    .await;
    assert!(identity.accepts(&operator).await);
    assert_eq!(names(&identity, &operator, true).await?, ["acme"]);
    assert_eq!(names(&identity, &operator, false).await?, ["operator"]);

    archive(&identity, &operator, &id, false).await?;
    assert!(!identity.accepts(&member).await, "revoked tokens stay revoked");
    let member = identity.caller_of("grace@example.com").await?;
    assert!(identity.accepts(&member).await);
    Ok(())
}

#[tokio::test]
async fn deleting_a_customer_deletes_accounts_without_another_customer() -> Result<()> {
    let identity = Identity::new().await?;
    let operator = identity.caller_of(ADMIN).await?;
    let visitor = identity.visitor("acme").await?;
    let member = identity.member(&visitor, "grace@example.com", "Testers").await?;
    identity.member(&visitor, ADMIN, "Testers").await?;
    identity.user(&visitor, "invited@example.com", "Testers").await?;
    let token = identity.token(3).await?;

    delete(&identity, &operator, &visitor.customer.to_string()).await?;
    assert_eq!(
        identity.login("grace@example.com", PASSWORD).await.unwrap_err().code(),
        Code::Unauthenticated
    );
    let refused = identity.reset(&token, "a password that is new").await.unwrap_err();
    assert_eq!(reason(&refused), "invalid_reset_token");
    assay_testkit::eventually("the rows of the customer to be removed", async || {
        let left = "select array[
            (select count(*) from account), (select count(*) from membership where customer_id = $1),
            (select count(*) from user_group where customer_id = $1),
            (select count(*) from audit_entry where customer_id = $1),
            (select count(*) from mail where customer_id = $1),
            (select count(*) from customer where id = $1 and purged_at is null)]";
        let left = sqlx::query_scalar(left).bind(visitor.customer).fetch_one(&identity.db);
        let left: Vec<i64> = left.await.ok()?;
        (left == [1, 0, 0, 0, 0, 0]).then_some(())
    })
    .await;
    identity.caller_of(ADMIN).await?;
    let again = delete(&identity, &operator, &visitor.customer.to_string()).await.unwrap_err();
    assert_eq!(again.code(), Code::NotFound);
    assay_testkit::eventually("the token is revoked", async || {
        (!identity.accepts(&member).await).then_some(())
    })
    .await;
    Ok(())
}

#[tokio::test]
async fn the_operators_customer_cannot_be_archived_or_deleted() -> Result<()> {
    let identity = Identity::new().await?;
    let caller = identity.caller_of(ADMIN).await?;
    let own = caller.customer.to_string();
    for refused in [
        archive(&identity, &caller, &own, true).await.unwrap_err(),
        delete(&identity, &caller, &own).await.unwrap_err(),
    ] {
        assert_eq!(refused.code(), Code::FailedPrecondition);
        assert_eq!(reason(&refused), "operator_customer");
    }
    Ok(())
}

#[tokio::test]
async fn an_update_of_a_stale_version_is_rejected() -> Result<()> {
    let identity = Identity::new().await?;
    let caller = identity.caller_of(ADMIN).await?;
    let id = create(&identity, &caller, "acme").await?;
    let change = |name: &str| UpdateCustomerRequest {
        id: id.clone(),
        data_version: Some("1".to_owned()),
        changes: Some(CustomerInput { name: name.to_owned(), ..CustomerInput::default() }),
        fields: vec!["Name".to_owned()],
    };
    let changed = identity.customers().update_customer(caller.call(change("A"))).await?;
    assert_eq!(changed.get_ref().name, "A");
    assert_eq!(
        (changed.get_ref().subdomain.as_str(), changed.get_ref().user_groups.len()),
        ("acme", 3)
    );
    let stale = identity.customers().update_customer(caller.call(change("B"))).await.unwrap_err();
    assert_eq!(stale.code(), Code::Aborted);
    Ok(())
}

#[tokio::test]
async fn invoice_data_is_changed_only_with_the_customer_management_permission() -> Result<()> {
    let identity = Identity::new().await?;
    let caller = identity.caller_of(ADMIN).await?;
    let id = create(&identity, &caller, "acme").await?;
    let change = async |input: CustomerInput, fields: &[&str]| {
        let fields = fields.iter().map(|field| (*field).to_owned()).collect();
        let request = UpdateCustomerRequest {
            id: id.clone(),
            data_version: None,
            changes: Some(input),
            fields,
        };
        identity.customers().update_customer(caller.call(request)).await
    };
    let invoicing = CustomerInput {
        account_number: Some("4711".to_owned()),
        currency: Some("CHF".to_owned()),
        tax: Some(7.7),
        ..CustomerInput::default()
    };
    let changed = change(invoicing, &["AccountNumber", "Currency", "Tax"]).await?.into_inner();
    assert_eq!(changed.account_number.as_deref(), Some("4711"));
    assert_eq!((changed.currency.as_str(), changed.tax, changed.due_days), ("CHF", 7.7, 30.0));
    for (input, field) in [
        (CustomerInput { currency: Some("euro".to_owned()), ..Default::default() }, "Currency"),
        (CustomerInput { tax: Some(101.0), ..Default::default() }, "Tax"),
        (CustomerInput { due_days: Some(-1.0), ..Default::default() }, "DueDays"),
        (CustomerInput { due_days: Some(1e300), ..Default::default() }, "DueDays"),
        (CustomerInput { price_per_hour: Some(0.00004), ..Default::default() }, "PricePerHour"),
        (CustomerInput::default(), "Currency"),
    ] {
        let refused = change(input, &[field]).await.unwrap_err();
        assert!(refused.message().starts_with(field), "{refused}");
    }
    Ok(())
}

#[tokio::test]
async fn each_change_repeats_the_appliances_and_its_event_names_no_operator() -> Result<()> {
    let identity = Identity::new().await?;
    let caller = identity.caller_of(ADMIN).await?;
    let id = create(&identity, &caller, "acme").await?;
    // They were stored before services knew them.
    sqlx::query("update customer set appliances = 'linux' where subdomain = 'acme'")
        .execute(&identity.db)
        .await?;
    archive(&identity, &caller, &id, true).await?;
    let published: Vec<(String, Option<String>)> = sqlx::query_as(
        "select action, data -> 'Actor' ->> 'Kind' from outbox
         where noun = 'customer' order by id desc limit 2",
    )
    .fetch_all(&identity.db)
    .await?;
    let [archived, appliances] = &published[..] else { panic!("{published:?}") };
    assert!(appliances.0.contains("appliances"), "{published:?}");
    assert_eq!((archived.0.as_str(), archived.1.as_deref()), ("archived", Some("Program")));
    Ok(())
}
