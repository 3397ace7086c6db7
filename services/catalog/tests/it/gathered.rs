//! Concurrent reads, creations and changes of test cases, which share statements.

use std::collections::HashSet;

use assay_proto::{TestResult, catalog::*};
use assay_testkit::{assert_planned_once, eventually, rows_read};
use futures::future::join_all;
use serde_json::json;
use sqlx::Connection as _;
use tonic::Code;

use crate::{
    list::add_cases,
    user::User,
    world::{Answer, World},
};

fn named(name: &str) -> TestCaseInput {
    TestCaseInput { name: name.to_owned(), ..TestCaseInput::default() }
}

/// Changes a test case, whatever its version is.
async fn describe(user: &User, case: &TestCase, text: &str) -> Answer<TestCase> {
    let case = TestCase { data_version: None, ..case.clone() };
    let changes = TestCaseInput { description: text.to_owned(), ..TestCaseInput::default() };
    user.update_case(&case, changes, &["Description"]).await
}

#[tokio::test]
async fn concurrent_reads_return_what_each_caller_asked_for() {
    let world = World::start().await;
    let (user, stranger) = (world.user().await, world.user().await);
    let project = user.project().await;
    let mut cases = Vec::new();
    for number in 0..15 {
        cases.push(user.case(&project, &format!("case-{number}")).await);
    }
    let read = async |user: &User, project_id: Option<String>, id: &str| {
        user.find_case(project_id, id).await.map(|case| case.name)
    };
    let elsewhere = user.project().await.id;
    let found = cases.iter().map(|case| read(&user, Some(project.id.clone()), &case.id));
    let permanent = cases.iter().map(|case| read(&user, None, &case.id));
    let of_other_project = cases.iter().map(|case| read(&user, Some(elsewhere.clone()), &case.id));
    let of_stranger = cases.iter().map(|case| read(&stranger, None, &case.id));
    let (found, permanent, of_other_project, of_stranger) = tokio::join!(
        join_all(found),
        join_all(permanent),
        join_all(of_other_project),
        join_all(of_stranger)
    );
    for (index, case) in cases.iter().enumerate() {
        assert_eq!(found[index].as_ref().unwrap(), &case.name);
        assert_eq!(permanent[index].as_ref().unwrap(), &case.name);
        assert_eq!(of_other_project[index].as_ref().unwrap_err().code(), Code::NotFound);
        assert_eq!(of_stranger[index].as_ref().unwrap_err().code(), Code::NotFound);
    }
}

/// Reads test cases in one call. Returns the name of each, or why it is not there.
async fn batch(
    user: &User,
    project_id: Option<String>,
    ids: &[&str],
) -> Answer<Vec<Result<String, Code>>> {
    let found = user.find_cases(project_id, ids).await?.into_iter();
    Ok(found.map(|case| case.map(|case| case.name).map_err(|status| status.code())).collect())
}

#[tokio::test]
async fn a_batch_has_each_test_case_at_the_place_of_its_id() {
    let world = World::start().await;
    let (user, stranger) = (world.user().await, world.user().await);
    let (project, elsewhere) = (user.project().await, user.project().await);
    let (first, second) = (user.case(&project, "1").await, user.case(&project, "2").await);
    let unknown = uuid::Uuid::now_v7().to_string();

    let ids = [&*second.id, &unknown, &first.id, "no id", &second.id];
    let (first, second) = (Ok(first.name.clone()), Ok(second.name.clone()));
    let missing = Err(Code::NotFound);
    let expected = [second.clone(), missing.clone(), first, missing.clone(), second];
    assert_eq!(batch(&user, Some(project.id.clone()), &ids).await.unwrap(), expected);
    assert_eq!(batch(&user, None, &ids).await.unwrap(), expected);
    for (reader, project) in [(&user, Some(elsewhere.id)), (&stranger, None)] {
        let found = batch(reader, project, &ids).await.unwrap();
        assert_eq!(found, vec![missing.clone(); 5]);
    }
    let too_many = batch(&user, None, &["no id"; 65]).await.unwrap_err();
    assert_eq!(too_many.code(), Code::InvalidArgument);
}

#[tokio::test]
async fn a_batch_of_large_test_cases_is_larger_than_a_message() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let description = "d".repeat(64 << 10);
    let case = user.create_case(&project.id, TestCaseInput { description, ..named("Large") }).await;
    let description = "p".repeat(64 << 10);
    for _ in 0..3 {
        let plan = TestPlanInput { description: Some(description.clone()), ..Default::default() };
        user.create_plan(case.as_ref().unwrap(), plan).await.unwrap();
    }
    let found = batch(&user, None, &[&*case.unwrap().id; 64]).await.unwrap();
    assert_eq!(found, vec![Ok("Large".to_owned()); 64]);
}

#[tokio::test]
async fn creations_of_a_batch_fail_on_their_own() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    user.case(&project, "taken").await;
    let taken = TestCaseInput { identifier: Some("taken".into()), ..named("Taken") };
    let cases = vec![named("First"), named(" "), taken, named("Last")];
    let created = user.create_cases(&project.id, cases.clone()).await.unwrap().into_iter();
    let created: Vec<_> =
        created.map(|case| case.map(|case| case.name).map_err(|status| status.code())).collect();
    let expected = [
        Ok("First".to_owned()),
        Err(Code::InvalidArgument),
        Err(Code::AlreadyExists),
        Ok("Last".to_owned()),
    ];
    assert_eq!(created, expected);

    let elsewhere = world.user().await.create_cases(&project.id, cases).await.unwrap();
    let codes = elsewhere.into_iter().map(|case| case.unwrap_err().code());
    let (missing, invalid) = (Code::NotFound, Code::InvalidArgument);
    assert_eq!(codes.collect::<Vec<_>>(), [missing, invalid, missing, missing]);
}

#[tokio::test]
async fn concurrent_creations_fail_on_their_own() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    user.case(&project, "TC-3").await;
    let inputs = (0..40).map(|number| match number {
        10 | 20 => TestCaseInput { identifier: Some("same".into()), ..named("Same") },
        _ => named(&format!("Case {number}")),
    });
    let created = inputs.map(|input| user.create_case(&project.id, input));
    let created = join_all(created).await;

    let (created, failed): (Vec<_>, Vec<_>) = created.into_iter().partition(Result::is_ok);
    let failed: Vec<_> = failed.into_iter().map(|failed| failed.unwrap_err().code()).collect();
    assert_eq!(failed, [Code::AlreadyExists]);
    let identifiers: HashSet<_> =
        created.into_iter().map(|case| case.unwrap().identifier).collect();
    assert_eq!(identifiers.len(), 39);
    assert!(!identifiers.contains("TC-3"), "{identifiers:?}");
    let events = world.events().await;
    let published =
        events.iter().filter(|(noun, action, _)| noun == "test_case" && action == "created");
    assert_eq!(published.count(), 40);
}

/// A plan of its own for each change takes PostgreSQL longer than the change.
#[tokio::test]
async fn postgresql_plans_changes_once() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let case = user.case(&project, "one").await;
    add_cases(&world, &user, &project, 2_000).await;
    sqlx::query("analyze").execute(&world.db).await.unwrap();
    for number in 0..100 {
        describe(&user, &case, &number.to_string()).await.unwrap();
    }
    assert_planned_once(&world.db, "with locked as%update test_case%").await;
}

/// A customer may have had few test cases when PostgreSQL analyzed the table.
#[tokio::test]
async fn a_change_reads_only_its_own_case() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let case = user.case(&project, "one").await;
    sqlx::query("analyze").execute(&world.db).await.unwrap();
    add_cases(&world, &user, &project, 2_000).await;
    let before = rows_read(&world.db, "test_case").await;
    for number in 0..100 {
        describe(&user, &case, &number.to_string()).await.unwrap();
    }
    let read = rows_read(&world.db, "test_case").await - before;
    assert!((100..2_000).contains(&read), "{read} rows");
}

#[tokio::test]
async fn each_concurrent_change_of_one_case_takes_effect() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let [one, other] = [user.case(&project, "one").await, user.case(&project, "other").await];
    let calls = (0..20).flat_map(|number| {
        let user = &user;
        [(&one, number), (&other, number)]
            .map(|(case, number)| async move { describe(user, case, &number.to_string()).await })
    });
    let changed: Result<Vec<_>, _> = join_all(calls).await.into_iter().collect();
    let changed = changed.unwrap();

    for case in [&one, &other] {
        let of_case = changed.iter().filter(|changed| changed.id == case.id);
        let versions: HashSet<_> =
            of_case.map(|changed| changed.data_version.clone().unwrap()).collect();
        assert_eq!(versions.len(), 20);
        assert_eq!(user.get_case(&case.id).await.data_version.as_deref(), Some("21"));
    }
    let stale = user.update_case(&one, named("New"), &["Name"]).await;
    assert_eq!(stale.unwrap_err().code(), Code::Aborted);
    let events = world.events().await;
    let published =
        events.iter().filter(|(noun, action, _)| noun == "test_case" && action == "changed");
    assert_eq!(published.clone().count(), 40);
    let mut versions: Vec<u32> = published
        .filter(|(.., data)| data["SourceId"] == one.id)
        .map(|(.., data)| data["RecordVersion"].as_str().unwrap().parse().unwrap())
        .collect();
    versions.sort_unstable();
    assert_eq!(versions, (2..=21).collect::<Vec<_>>(), "each event has the version of its change");
}

#[tokio::test]
async fn the_events_of_gathered_creations_have_the_actors_of_their_callers() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let machine = world.with_api_token(&user).await;
    let creations = (0..20).map(|number| {
        let caller = if number % 2 == 0 { &user } else { &machine };
        let identifier = Some(format!("case {number}"));
        caller.create_case(&project.id, TestCaseInput { identifier, ..named("case") })
    });
    for created in join_all(creations).await {
        created.unwrap();
    }
    let events = world.events().await;
    let created: Vec<_> = events.iter().filter(|(noun, ..)| noun == "test_case").collect();
    assert_eq!(created.len(), 20);
    for (number, caller) in [(0, &user), (1, &machine)] {
        let actor = json!(caller.identity.caller.actor());
        let of_caller = created.iter().filter(|(.., data)| data["Actor"] == actor);
        assert_eq!(of_caller.count(), 10, "{number}: {actor}");
    }
}

#[tokio::test]
async fn a_change_of_a_locked_case_does_not_delay_others() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let mut cases = Vec::new();
    for identifier in ["locked", "first", "second", "third"] {
        cases.push(user.case(&project, identifier).await);
    }
    let mut connection = world.db.acquire().await.unwrap();
    let mut lock = connection.begin().await.unwrap();
    let locked = cases.remove(0);
    sqlx::query("update test_case set last_result = 'Passed' where id = $1::uuid")
        .bind(&locked.id)
        .execute(&mut *lock)
        .await
        .unwrap();

    let change = |case: &TestCase| UpdateTestCaseRequest {
        id: case.id.clone(),
        changes: Some(named("Renamed")),
        fields: vec!["Name".into()],
        ..Default::default()
    };
    let both = vec![change(&locked), change(&cases[0])];
    let renamed = user.update_cases(&project.id, both, false).await.unwrap().into_iter();
    let renamed: Vec<_> = renamed.map(|case| case.unwrap().map(|case| case.name)).collect();
    assert_eq!(renamed, [None, Some("Renamed".to_owned())]);

    let waiting = describe(&user, &locked, "changed later");
    let others = join_all(cases.iter().map(|case| describe(&user, case, "changed")));
    let release = async {
        eventually("the other changes", async || {
            let mut changed = 0;
            for case in &cases {
                changed += usize::from(user.get_case(&case.id).await.description == "changed");
            }
            (changed == cases.len()).then_some(())
        })
        .await;
        lock.commit().await.unwrap();
    };
    let (waited, others, ()) = tokio::join!(waiting, others, release);
    assert!(others.iter().all(Result::is_ok), "{others:?}");
    let waited = waited.unwrap();
    assert_eq!(
        (waited.description.as_str(), waited.last_result),
        ("changed later", Some(TestResult::Passed.into()))
    );
}
