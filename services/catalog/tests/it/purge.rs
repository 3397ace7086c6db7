//! Purge of the records of deleted projects and customers.

mod tables;

use std::{
    collections::{BTreeMap, BTreeSet},
    pin::pin,
    time::{Duration, Instant},
};

use assay_proto::{VariableInput, catalog::*};
use sqlx::{Connection, PgConnection, PgPool, postgres::PgListener};
use tokio::time::{interval, timeout};
use tonic::Response;
use uuid::Uuid;

use crate::{
    file::resumable::{append, begin},
    user::{User, web_page},
    world::{World, fault},
};

/// Tables with rows that belong to records of projects.
const PARTS: [&str; 4] = ["test_set_case", "test_plan", "test_report", "favorite"];

/// Lists the tables with records of projects.
async fn record_tables(db: &PgPool) -> Vec<String> {
    let tables = "select table_name::text from information_schema.columns
        where table_schema = 'public' and column_name = 'project_id'";
    sqlx::query_scalar(tables).fetch_all(db).await.unwrap()
}

async fn delete(user: &User, project: &Project) {
    let request = user.call(DeleteProjectRequest { id: project.id.clone() });
    user.projects().delete_project(request).await.map(Response::into_inner).unwrap();
}

/// Number of rows in each table.
async fn rows(db: &PgPool) -> BTreeMap<String, i64> {
    let mut rows = BTreeMap::new();
    for table in record_tables(db).await.into_iter().chain(PARTS.map(str::to_owned)) {
        let statement = sqlx::AssertSqlSafe(format!("select count(*) from {table}"));
        rows.insert(table, sqlx::query_scalar(statement).fetch_one(db).await.unwrap());
    }
    rows
}

/// Adds cases, each with one plan.
async fn add_cases(world: &World, user: &User, project: &Project, count: i32) {
    sqlx::query(
        "with cases as (
             insert into test_case (customer_id, project_id, id, identifier, name, description)
             select $1, $2, gen_random_uuid(), 'case-' || n, 'Case', '' from generate_series(1, $3) n
             returning id
         )
         insert into test_plan (customer_id, test_case_id, id, revision, status, test_type,
             instances, minimum_duration_in_min)
         select $1, id, gen_random_uuid(), 1, 'ReadyForExecution', 'Default', 1, 0 from cases",
    )
    .bind(user.identity.customer)
    .bind(project.id.parse::<Uuid>().unwrap())
    .bind(count)
    .execute(&world.db)
    .await
    .unwrap();
}

/// Whether there are deleted projects whose records are not removed.
async fn is_pending(db: &PgPool) -> bool {
    let pending = "select exists (
        select from project where deleted_at is not null and purged_at is null
    )";
    sqlx::query_scalar(pending).fetch_one(db).await.unwrap()
}

/// Marks events as published as soon as they are committed, like the relay, until dropped.
async fn publish(db: &PgPool) -> ! {
    let mut commits = PgListener::connect_with(db).await.unwrap();
    commits.listen("outbox").await.unwrap();
    // Commits are announced while a relay sleeps.
    let asleep = "select pg_advisory_lock(hashtextextended('assay outbox relay asleep', 0))";
    sqlx::query(asleep).execute(&mut commits).await.unwrap();
    loop {
        sqlx::query("update outbox set published_at = now() where published_at is null")
            .execute(db)
            .await
            .unwrap();
        commits.recv().await.unwrap();
    }
}

/// Waits until a purge has checked the number of unpublished events several times without adding
/// any.
async fn repeated_checks(world: &World) {
    let mut own = PgConnection::connect(&world.database_url).await.unwrap();
    let (mut checks, mut before) = (BTreeSet::new(), 0);
    let mut tick = interval(Duration::from_millis(20));
    loop {
        tick.tick().await;
        let check =
            "select (select count(*) from outbox where published_at is null), query_start::text
             from pg_stat_activity
             where datname = current_database() and query like 'select count(*) from outbox%'
             order by query_start desc limit 1";
        let check = sqlx::query_as(check).fetch_optional(&mut own).await.unwrap();
        let Some((unpublished, time)): Option<(i64, String)> = check else { continue };
        if std::mem::replace(&mut before, unpublished) != unpublished {
            checks.clear();
        }
        checks.insert(time);
        if checks.len() > 3 {
            return;
        }
    }
}

/// Number of `deleted` events of each record.
async fn deleted(world: &World) -> BTreeMap<(String, String), usize> {
    let mut deleted = BTreeMap::new();
    for (noun, action, data) in world.events().await {
        if action == "deleted" {
            let id = data["SourceId"].as_str().unwrap().to_owned();
            *deleted.entry((noun, id)).or_default() += 1;
        }
    }
    deleted
}

#[tokio::test]
async fn a_purge_removes_all_rows_of_a_project_and_publishes_their_deletion() {
    let world = World::start().await;
    let user = world.user().await;
    let (project, kept) = (user.project().await, user.project().await);
    let secret = VariableInput {
        name: "PIN".into(),
        content: "4711".into(),
        is_secured: true,
        ..VariableInput::default()
    };
    let mut records_of_projects = Vec::new();
    for project in [&project, &kept] {
        let [case, archived, gone] = [
            user.case(project, "a").await,
            user.case(project, "b").await,
            user.case(project, "c").await,
        ];
        let plan = TestPlanInput { variables: vec![secret.clone()], ..TestPlanInput::default() };
        let plan = user.create_plan(&case, plan).await.unwrap();
        let set = user.set(project, &[&case, &archived, &gone]).await;
        user.archive_case(&archived).await;
        let aliases = ReplaceAliasesRequest {
            project_id: project.id.clone(),
            id: case.id.clone(),
            aliases: Some(TestCaseAliasesInput { aliases: vec!["alias".to_owned()] }),
        };
        user.cases().replace_aliases(user.call(aliases)).await.unwrap();
        let deletion = DeleteTestCaseRequest { project_id: project.id.clone(), id: gone.id };
        user.cases().delete_test_case(user.call(deletion)).await.unwrap();
        let base = SubjectInput { variables: vec![secret.clone()], ..web_page() };
        let base = user.create_subject(project, base).await.unwrap();
        let built_upon = SubjectInput { base_subject_id: Some(base.id.clone()), ..web_page() };
        let built_upon = user.create_subject(project, built_upon).await.unwrap();
        let lab = EnvironmentInput {
            name: "Lab".into(),
            contained_subject: Some(base.id.clone()),
            password: "4711".into(),
            ..EnvironmentInput::default()
        };
        let lab = user.create_environment(project, lab).await.unwrap();
        user.upload(project, "shop.msi", b"MSI").await.unwrap();
        let upload = begin(&user, project, 100).await.unwrap();
        append(&user, &upload, 0, b"MSI").await.unwrap();
        records_of_projects.push([
            ("environment".to_owned(), lab.id),
            ("project".to_owned(), project.id.clone()),
            ("subject".to_owned(), base.id),
            ("subject".to_owned(), built_upon.id),
            ("test_case".to_owned(), case.id),
            ("test_case".to_owned(), archived.id),
            ("test_plan".to_owned(), plan.id),
            ("test_set".to_owned(), set.id),
        ]);
    }
    let before = rows(&world.db).await;
    for table in record_tables(&world.db).await {
        assert!(before[&table] > 0, "this test needs a record in the table {table}");
    }
    let known = deleted(&world).await;
    delete(&user, &project).await;
    assert_eq!(rows(&world.db).await, before, "rows are removed in the background");
    assay_catalog::purge(&world.db).await.unwrap();

    let after = rows(&world.db).await;
    for (table, count) in &after {
        assert_eq!(count * 2, before[table], "the purge left rows in the table {table}");
    }
    let mut events = deleted(&world).await;
    events.retain(|record, _| !known.contains_key(record));
    let mut expected = records_of_projects[0].to_vec();
    expected.sort();
    assert_eq!(events.keys().cloned().collect::<Vec<_>>(), expected);
    assert!(events.values().all(|count| *count == 1), "{events:?}");
    let case = records_of_projects[1].iter().find(|(noun, _)| noun == "test_case");
    let (_, case) = case.expect("a test case");
    assert_eq!(user.get_case(case).await.identifier, "a");
}

#[tokio::test]
async fn an_interrupted_purge_publishes_each_deletion_once() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    add_cases(&world, &user, &project, 3000).await;
    delete(&user, &project).await;
    let mut interruptions = 0;
    let removed = async {
        // While the connection of an interrupted purge has the lock, the next one returns at once.
        while is_pending(&world.db).await {
            // Each has more time, so that one removes something however slow the machine is.
            let time = Duration::from_millis(60 + 10 * interruptions);
            let purge = timeout(time, assay_catalog::purge(&world.db));
            interruptions += u64::from(purge.await.is_err());
            // Programs live longer.
            sqlx::query("update unfinished_work set taken = 0").execute(&world.db).await.unwrap();
        }
    };
    tokio::select! { () = removed => {} _ = publish(&world.db) => {} }
    assert!(interruptions > 0, "the purge was never interrupted");
    let events = deleted(&world).await;
    assert_eq!(events.len(), 2 * 3000 + 1);
    assert!(events.values().all(|count| *count == 1));
    assert_eq!(rows(&world.db).await["test_case"], 0);
}

#[tokio::test]
async fn other_customers_can_write_while_a_large_project_is_purged() {
    let world = World::start().await;
    let user = world.user().await;
    let (project, neighbour) = (user.project().await, user.project().await);
    add_cases(&world, &user, &project, 20_000).await;
    let started = Instant::now();
    delete(&user, &project).await;
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
    let mut slowest = Duration::ZERO;
    let working = async {
        for number in 0.. {
            let started = Instant::now();
            user.case(&neighbour, &format!("case-{number}")).await;
            slowest = slowest.max(started.elapsed());
        }
    };
    tokio::select! {
        done = assay_catalog::purge(&world.db) => done.unwrap(),
        () = working => {}
        _ = publish(&world.db) => {}
    }
    assert!(slowest < Duration::from_secs(1), "another customer waited for {slowest:?}");
    assert_eq!(deleted(&world).await.len(), 2 * 20_000 + 1);
}

#[tokio::test]
async fn a_purge_waits_while_many_events_are_unpublished() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    add_cases(&world, &user, &project, 5000).await;
    delete(&user, &project).await;
    let mut purge = pin!(assay_catalog::purge(&world.db));
    tokio::select! {
        _ = &mut purge => panic!("the purge did not wait"),
        () = repeated_checks(&world) => {}
    }
    let unpublished = assay_events::unpublished(&world.db).await.unwrap();
    assert!((1..5000).contains(&unpublished), "{unpublished} events wait");

    tokio::select! { done = purge => done.unwrap(), _ = publish(&world.db) => {} }
    assert_eq!(rows(&world.db).await["test_case"], 0);
}

#[tokio::test]
async fn deleting_a_customer_removes_its_projects_and_prevents_new_ones() {
    let world = World::start().await;
    let (user, other) = (world.user().await, world.user().await);
    let (project, kept) = (user.project().await, other.project().await);
    let case = user.case(&project, "a").await;
    let kept = other.case(&kept, "a").await;
    let before = deleted(&world).await.len();

    let mut tx = assay_database::begin(&world.db).await.unwrap();
    assay_catalog::delete_customer(&mut tx, user.identity.customer).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(fault(user.find_case(None, &case.id).await), "not_found");
    let new = ProjectInput { name: "Shop".into(), ..ProjectInput::default() };
    let request = CreateProjectRequest { project: Some(new) };
    assert_eq!(fault(user.projects().create_project(user.call(request)).await), "not_found");
    assay_catalog::purge(&world.db).await.unwrap();
    assert_eq!(rows(&world.db).await["test_case"], 1);
    assert_eq!(
        deleted(&world).await.len(),
        before,
        "no events are published for a deleted customer"
    );
    assert_eq!(other.get_case(&kept.id).await, kept);
}

#[tokio::test]
async fn a_project_that_cannot_be_purged_delays_no_other_and_is_given_up() {
    let world = World::start().await;
    let user = world.user().await;
    let [stuck, other] = [user.project().await, user.project().await];
    user.case(&stuck, "a").await;
    user.case(&other, "a").await;
    let refuse = format!(
        "create function refuse() returns trigger language plpgsql as
         'begin raise exception ''stuck''; end';
         create trigger refuse before delete on test_case for each row
         when (old.project_id = '{}') execute function refuse()",
        stuck.id
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(refuse)).execute(&world.db).await.unwrap();
    delete(&user, &stuck).await;
    delete(&user, &other).await;
    assay_catalog::purge(&world.db).await.unwrap();
    let pending = "select id::text from project where deleted_at is not null and purged_at is null";
    let left: Vec<String> = sqlx::query_scalar(pending).fetch_all(&world.db).await.unwrap();
    assert_eq!(left, std::slice::from_ref(&stuck.id));

    let last = "update unfinished_work set failures = 19, next_attempt_at = now()";
    sqlx::query(last).execute(&world.db).await.unwrap();
    assay_catalog::purge(&world.db).await.unwrap();
    let work = assay_catalog::WORK.iter().find(|work| work.kind == "purge").unwrap();
    let mut letters = Vec::new();
    work.list(&world.db, None, |letter| letters.push(letter)).await.unwrap();
    let [letter] = &letters[..] else { panic!("one dead letter: {letters:?}") };
    assert!(letter.reason.as_ref().unwrap().contains("stuck"), "{letter:?}");

    sqlx::raw_sql("drop trigger refuse on test_case").execute(&world.db).await.unwrap();
    assay_catalog::purge(&world.db).await.unwrap();
    assert!(is_pending(&world.db).await, "it is given up");
    let mut connection = world.db.acquire().await.unwrap();
    work.retry(&mut connection, None).await.unwrap();
    assay_catalog::purge(&world.db).await.unwrap();
    assert!(!is_pending(&world.db).await);
}
