//! Tokens that die before their time.

use std::time::{Duration, Instant};

use assay_testkit::{Api, eventually};
use serde_json::json;

use crate::{
    people::{GROUPS, Member, group, prepare, reset},
    world::{World, id},
};

/// Waits until a token is refused, and says how long that took.
pub(super) async fn dies(api: &Api) -> Duration {
    let begun = Instant::now();
    eventually("the token is dead", || async {
        (api.get("/api/projects").await.status == 401).then_some(())
    })
    .await;
    begun.elapsed()
}

/// Kills the tokens of a member, in the way with that number.
async fn kill(world: &World, admin: &Api, member: &Member, way: usize) {
    let user = format!("/api/users/{}", member.id);
    let group_path = format!("{GROUPS}/{}", member.group);
    match way {
        0 => {
            prepare(&world.anonymous(), &member.email, "").await.ok();
            let mail = world.mail_to(&member.email).await;
            reset(&world.anonymous(), mail.token(), "an altogether different phrase").await.ok();
        }
        1 => drop(admin.put(&group_path, json!({"UsagePermission": "Login"})).await.ok()),
        2 => {
            let other = group(admin, &format!("Other {way}"), "Login, Read").await;
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

/// Kills tokens in every way, and says how long the longest of them lived.
async fn longest_survival(world: &World) -> Duration {
    let admin = world.manage_new("acme").await;
    let bystander = world.member(&admin, "alan@example.org", "Login, Read").await;
    let mut longest = Duration::ZERO;
    for way in 0..WAYS {
        let member = world.member(&admin, &format!("user{way}@example.org"), "Login, Read").await;
        member.api.get("/api/projects").await.ok();
        kill(world, &admin, &member, way).await;
        longest = longest.max(dies(&member.api).await);
        let others_live = way < WAYS - 1;
        assert_eq!(bystander.api.get("/api/projects").await.status == 200, others_live, "{way}");
    }
    longest
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ends_a_membership_ends_its_tokens_within_a_second() {
    let world = World::start().await;
    let longest = longest_survival(&world).await;
    assert!(longest < Duration::from_secs(1), "{longest:?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_nats_it_takes_no_more_than_five_seconds() {
    let mut world = World::start().await;
    world.stop_nats().await;
    let longest = longest_survival(&world).await;
    assert!(longest < Duration::from_secs(5), "{longest:?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_group_holds_for_requests_that_are_under_way() {
    let world = World::start().await;
    let admin = world.manage_new("acme").await;
    let grace = world.member(&admin, "grace@example.org", "Login, Read, Write").await;
    let work = async {
        let mut last = Instant::now();
        // Until it was refused for a whole second without a break.
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
        eventually("some work", || async {
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
async fn a_token_that_is_got_right_after_a_change_lives() {
    let world = World::start().await;
    let admin = world.manage_new("acme").await;
    let grace = world.member(&admin, "grace@example.org", "Login, Read").await;
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
async fn what_was_revoked_is_known_after_a_restart() {
    let world = World::start().await;
    let admin = world.manage_new("acme").await;
    let grace = world.member(&admin, "grace@example.org", "Login, Read").await;
    let alan = world.member(&admin, "alan@example.org", "Login, Read").await;
    let token_of = |member: &Member| member.api.clone();
    kill(&world, &admin, &grace, 3).await;
    let (grace, alan) = (token_of(&grace), token_of(&alan));
    let world = world.restarted().await;
    let (grace, alan) = (world.anonymous().as_who(&grace), world.anonymous().as_who(&alan));
    grace.get("/api/projects").await.is_problem(401, "unauthenticated");
    alan.get("/api/projects").await.ok();
    world.stop().await;
}
