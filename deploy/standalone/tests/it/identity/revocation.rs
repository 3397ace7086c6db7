//! Revocation of tokens.

use std::time::{Duration, Instant};

use assay_testkit::{Api, eventually};
use serde_json::json;

use crate::{
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

/// Revokes the tokens of a member in one of several ways.
async fn revoke(world: &World, admin: &Api, member: &Member, way: usize) {
    let user = format!("/api/users/{}", member.id);
    let group_path = format!("{GROUPS}/{}", member.group);
    match way {
        0 => {
            request_password_reset(&world.anonymous(), &member.email, "").await.ok();
            let mail = world.take_mail_to(&member.email).await;
            reset_password(&world.anonymous(), mail.token(), "an altogether different phrase")
                .await
                .ok();
        }
        1 => drop(admin.put(&group_path, json!({"UsagePermission": "Login"})).await.ok()),
        2 => {
            let other = create_group(admin, &format!("Other {way}"), "Login, Read").await;
            admin.put(&user, json!({"UserGroup": {"Id": id(&other)}})).await.ok();
        }
        3 => drop(admin.delete(&user).await.expect(204).status),
        _ => {
            let current = admin.get("/api/management/customers/current").await.ok();
            let customer = format!("/api/management/customers/{}", id(&current));
            world.api.put(&customer, json!({"Archived": true})).await.ok();
        }
    }
}

const WAYS: usize = 5;

/// Revokes tokens in every way; returns the longest time until one is rejected.
async fn longest_time_until_revoked(world: &World) -> Duration {
    let admin = world.act_for_new_customer("acme").await;
    let bystander = world.create_member(&admin, "alan@example.org", "Login, Read").await;
    let mut longest = Duration::ZERO;
    for way in 0..WAYS {
        let member =
            world.create_member(&admin, &format!("user{way}@example.org"), "Login, Read").await;
        member.api.get("/api/projects").await.ok();
        revoke(world, &admin, &member, way).await;
        longest = longest.max(time_until_revoked(&member.api).await);
        let others_stay_valid = way < WAYS - 1;
        assert_eq!(
            bystander.api.get("/api/projects").await.status == 200,
            others_stay_valid,
            "{way}"
        );
    }
    longest
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_membership_revokes_its_tokens_within_a_second() {
    let world = World::start().await;
    let longest = longest_time_until_revoked(&world).await;
    assert!(longest < Duration::from_secs(1), "{longest:?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_revoked_within_five_seconds_without_nats() {
    let mut world = World::start().await;
    world.stop_nats().await;
    let longest = longest_time_until_revoked(&world).await;
    assert!(longest < Duration::from_secs(5), "{longest:?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_group_applies_to_concurrent_requests() {
    let world = World::start().await;
    let admin = world.act_for_new_customer("acme").await;
    let grace = world.create_member(&admin, "grace@example.org", "Login, Read, Write").await;
    let work = async {
        let mut last = Instant::now();
        // Until all requests of a whole second were rejected.
        loop {
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

    let again = world.log_in(&grace.email).await;
    again.get("/api/projects").await.ok();
    again.post("/api/projects", json!({"Name": "X"})).await.is_problem(403, "forbidden");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_issued_right_after_a_change_is_valid() {
    let world = World::start().await;
    let admin = world.act_for_new_customer("acme").await;
    let grace = world.create_member(&admin, "grace@example.org", "Login, Read").await;
    for round in 0..10 {
        let permissions = ["Login, Read, Write", "Login, Read"][round % 2];
        let change = json!({"UsagePermission": permissions});
        admin.put(&format!("{GROUPS}/{}", grace.group), change).await.ok();
        let api = world.log_in(&grace.email).await;
        let current = api.get("/api/users/current").await.ok();
        assert_eq!(current["UsagePermission"], permissions);
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn revocations_survive_a_restart() {
    let world = World::start().await;
    let admin = world.act_for_new_customer("acme").await;
    let grace = world.create_member(&admin, "grace@example.org", "Login, Read").await;
    let alan = world.create_member(&admin, "alan@example.org", "Login, Read").await;
    let token_of = |member: &Member| member.api.clone();
    revoke(&world, &admin, &grace, 3).await;
    let (grace, alan) = (token_of(&grace), token_of(&alan));
    let world = world.restart().await;
    let (grace, alan) =
        (world.anonymous().with_token_of(&grace), world.anonymous().with_token_of(&alan));
    grace.get("/api/projects").await.is_problem(401, "unauthenticated");
    alan.get("/api/projects").await.ok();
    world.stop().await;
}
