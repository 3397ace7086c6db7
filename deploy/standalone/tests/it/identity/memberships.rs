//! The memberships of an account, between which a user switches.

use serde_json::{Value, json};

use crate::{
    customer::Customer,
    people::{create_user, refine_token},
    world::id,
};

const MEMBERSHIPS: &str = "/api/users/current/memberships";

/// The memberships as their customer, whether they are current and whether they are pending.
fn states(memberships: &Value) -> Vec<(&str, bool, bool)> {
    let memberships = memberships.as_array().unwrap().iter();
    let is = |one: &Value, field: &str| one[field].as_bool().unwrap();
    memberships
        .map(|one| (one["CustomerId"].as_str().unwrap(), is(one, "Current"), is(one, "Pending")))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_switches_to_a_customer_of_the_list() {
    let first = Customer::new().await;
    let second = Customer::of(first.assay.clone()).await;
    let [of_first, of_second] = [&first, &second]
        .map(async |customer| customer.api.get("/api/management/customers/current").await.ok());
    let (of_first, of_second) = tokio::join!(of_first, of_second);
    let grace = first.create_member("grace", "Login, Read").await;
    let group = of_second["UserGroups"][0].clone();
    create_user(&second.api, &grace.email, id(&group)).await.created();

    let invited = grace.api.get(MEMBERSHIPS).await.ok();
    let [here, there] = [id(&of_first), id(&of_second)];
    assert_eq!(states(&invited), [(here, true, false), (there, false, true)]);
    let invitation = &invited[1];
    assert_eq!(invitation["UserGroupName"], Value::Null);
    refine_token(&grace.api, there).await.is_problem(403, "forbidden");
    let machine = json!({"Name": "CI", "UsagePermission": "Read"});
    let machine = grace.api.post("/api/users/current/tokens", machine).await.created();
    let machine = first.anonymous().with_token(machine["Secret"].as_str().unwrap());

    let accept = format!("{MEMBERSHIPS}/{}/accept", id(invitation));
    grace.api.post(&accept, json!({})).await.expect(204);
    let accepted = grace.api.get(MEMBERSHIPS).await.ok();
    assert_eq!(states(&accepted), [(here, true, false), (there, false, false)]);
    assert_eq!(accepted[1]["CustomerName"], of_second["Name"]);
    assert_eq!(accepted[1]["Subdomain"], of_second["Subdomain"]);
    assert_eq!(accepted[1]["UserGroupName"], group["Name"]);
    assert_eq!(accepted[1]["LastUsedAt"], Value::Null, "never used");
    let token = refine_token(&grace.api, there).await.ok();
    let switched = first.anonymous().with_token(token["token"].as_str().unwrap());
    let seen = switched.get(MEMBERSHIPS).await.ok();
    assert_eq!(states(&seen), [(here, false, false), (there, true, false)]);
    assert!(seen[1]["LastUsedAt"].is_string(), "{seen}");

    let own = machine.get(MEMBERSHIPS).await.ok();
    assert_eq!(states(&own), [(here, true, false)], "an API token sees its own customer");
    for stranger in [&first.api, &second.api] {
        let seen = stranger.get(MEMBERSHIPS).await.ok();
        assert_eq!(seen.as_array().unwrap().len(), 1, "{seen}");
        assert_eq!(seen[0]["Current"], true);
    }
}
