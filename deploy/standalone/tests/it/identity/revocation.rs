//! Revocation of tokens.

use std::time::{Duration, Instant};

use assay_testkit::{Api, eventually};
use futures::future::join_all;
use serde_json::json;
use tokio::time::interval;

use crate::{
    customer::{Customer, unique},
    installation::Installation,
    people::{GROUPS, Member, create_group, request_password_reset, reset_password},
    world::{World, id},
};

/// Waits until a token is rejected; returns the elapsed time.
pub(super) async fn time_until_revoked(api: &Api) -> Duration {
    let started = Instant::now();
    eventually("the token to be rejected", || async {
        (api.get("/api/projects").await.status == 401).then_some(())
    })
    .await;
    started.elapsed()
}

/// A change that revokes the tokens of a member.
#[derive(Clone, Copy, Debug)]
enum Change {
    PasswordReset,
    Permissions,
    Group,
    Deletion,
}

impl Change {
    const ALL: [Self; 4] = [Self::PasswordReset, Self::Permissions, Self::Group, Self::Deletion];

    async fn apply(self, assay: &Installation, admin: &Api, member: &Member) {
        let user = format!("/api/users/{}", member.id);
        match self {
            Self::PasswordReset => {
                let anonymous = assay.anonymous();
                request_password_reset(&anonymous, &member.email, "").await.ok();
                let mail = assay.take_mail_to(&member.email).await;
                let new = "an altogether different phrase";
                reset_password(&anonymous, mail.token(), new).await.ok();
            }
            Self::Permissions => {
                let group = format!("{GROUPS}/{}", member.group);
                admin.put(&group, json!({"UsagePermission": "Login"})).await.ok();
            }
            Self::Group => {
                let other = create_group(admin, "Others", "Login, Read").await;
                admin.put(&user, json!({"UserGroup": {"Id": id(&other)}})).await.ok();
            }
            Self::Deletion => {
                admin.delete(&user).await.expect(204);
            }
        }
    }
}

/// Revokes tokens of members by every change, and those of a bystander by archiving the customer.
/// Returns the longest time until one is rejected.
async fn longest_time_until_revoked(assay: &Installation) -> Duration {
    let customer = assay.create_customer(&unique("acme")).await;
    let admin = assay.act_for(&customer).await;
    let member = async || {
        let email = format!("{}@example.org", unique("member"));
        let member = assay.create_member(&admin, &email, "Login, Read").await;
        member.api.get("/api/projects").await.ok();
        member
    };
    let bystander = member().await;
    let changes = Change::ALL.map(async |change| {
        let member = member().await;
        change.apply(assay, &admin, &member).await;
        time_until_revoked(&member.api).await
    });
    let longest = join_all(changes).await.into_iter().max().unwrap();
    bystander.api.get("/api/projects").await.ok();
    let path = format!("/api/management/customers/{}", id(&customer));
    assay.api.put(&path, json!({"Archived": true})).await.ok();
    longest.max(time_until_revoked(&bystander.api).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_membership_revokes_its_tokens_within_a_second() {
    let longest = longest_time_until_revoked(&Installation::shared().await).await;
    assert!(longest < Duration::from_secs(1), "{longest:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_nats_tokens_are_revoked_within_five_seconds_and_stay_revoked() {
    let mut world = World::start().await;
    world.stop_nats().await;
    let longest = longest_time_until_revoked(&world).await;
    assert!(longest < Duration::from_secs(5), "{longest:?}");

    let admin = world.act_for_new_customer("acme").await;
    let grace = world.create_member(&admin, "grace@example.org", "Login, Read").await;
    let alan = world.create_member(&admin, "alan@example.org", "Login, Read").await;
    Change::Deletion.apply(&world, &admin, &grace).await;
    let world = world.restart().await;
    let api = world.anonymous();
    api.with_token_of(&grace.api).get("/api/projects").await.is_problem(401, "unauthenticated");
    api.with_token_of(&alan.api).get("/api/projects").await.ok();
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_group_applies_to_concurrent_requests() {
    let customer = Customer::new().await;
    let admin = &customer.api;
    let grace = customer.create_member("grace", "Login, Read, Write").await;
    let work = async {
        let (mut last, mut ticks) = (Instant::now(), interval(Duration::from_millis(10)));
        // Until all requests of a whole second were rejected.
        loop {
            ticks.tick().await;
            let body = json!({"Name": "Rocket", "Description": ""});
            let sent = Instant::now();
            match grace.api.post("/api/projects", body).await.status.as_u16() {
                201 => last = sent,
                401 if sent.duration_since(last) > Duration::from_secs(1) => return last,
                401 => {}
                status => panic!("{status}"),
            }
        }
    };
    let change = async {
        eventually("some requests", || async {
            let projects = admin.get("/api/projects").await.ok();
            (projects.as_array().unwrap().len() > 10).then_some(())
        })
        .await;
        let path = format!("{GROUPS}/{}", grace.group);
        admin.put(&path, json!({"UsagePermission": "Login, Read"})).await.ok();
        Instant::now()
    };
    let (last, changed) = tokio::join!(work, change);
    let late = last.saturating_duration_since(changed);
    assert!(late < Duration::from_secs(1), "still writing {late:?} later");

    let again = customer.assay.log_in(&grace.email).await;
    again.get("/api/projects").await.ok();
    again.post("/api/projects", json!({"Name": "X"})).await.is_problem(403, "forbidden");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_issued_right_after_a_change_is_valid() {
    let customer = Customer::new().await;
    let grace = customer.create_member("grace", "Login, Read").await;
    for round in 0..10 {
        let permissions = ["Login, Read, Write", "Login, Read"][round % 2];
        let change = json!({"UsagePermission": permissions});
        customer.api.put(&format!("{GROUPS}/{}", grace.group), change).await.ok();
        let api = customer.assay.log_in(&grace.email).await;
        let current = api.get("/api/users/current").await.ok();
        assert_eq!(current["UsagePermission"], permissions);
    }
}
