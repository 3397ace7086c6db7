//! Test sets and their members.

use std::time::Instant;

use assay_proto::{Reference, catalog::*};

use crate::{
    user::User,
    world::{Answer, World, collect_set, fault, invalid_fields, listed, page},
};

fn references(cases: &[&TestCase]) -> Vec<Reference> {
    cases.iter().map(|case| Reference { id: case.id.clone() }).collect()
}

fn identifiers(set: &TestSet) -> Vec<&str> {
    set.test_cases.iter().map(|case| case.identifier.as_str()).collect()
}

async fn include(user: &User, set: &TestSet, test_cases: Vec<Reference>) -> Answer<TestSet> {
    let request = user.call(IncludeTestCasesRequest {
        project_id: set.project_id.clone(),
        test_set_id: set.id.clone(),
        test_cases,
    });
    collect_set(user.sets().include_test_cases(request).await?.into_inner()).await
}

async fn exclude(user: &User, set: &TestSet, test_cases: Vec<Reference>) -> Answer<()> {
    let request = user.call(ExcludeTestCasesRequest {
        project_id: set.project_id.clone(),
        test_set_id: set.id.clone(),
        test_cases,
    });
    user.sets().exclude_test_cases(request).await.map(drop)
}

async fn replace(user: &User, set: &TestSet, test_cases: Vec<Reference>) -> Answer<TestSet> {
    let changes = TestSetInput { test_cases, ..TestSetInput::default() };
    user.update_set(set, changes, &["TestCases"]).await
}

#[tokio::test]
async fn a_test_set_is_read_as_it_was_created() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let subject = user.subject(&project).await;
    let environment = user.environment(&project).await;
    let input = TestSetInput {
        name: "Nightly".into(),
        description: Some("Every night".into()),
        priority: Some("High".into()),
        selected_subject_id: Some(subject.id.clone()),
        selected_environment_id: Some(environment.id.clone()),
        tags: Some("a,b".into()),
        stop_on_failure: true,
        time_out: 90.5,
        ..TestSetInput::default()
    };
    let entry = user.create_set(&project, input).await.unwrap();
    let set = user.get_set(&entry.id).await.unwrap();

    assert_eq!(set.description.as_deref(), Some("Every night"));
    assert_eq!(set.selected_subject_id, Some(subject.id));
    assert_eq!(set.selected_environment_id, Some(environment.id));
    assert_eq!((set.stop_on_failure, set.time_out), (true, 90.5));
    assert_eq!(set.last_run_duration, "00:00:00");
    assert_eq!((set.last_executed, &set.last_execution_statistic), (None, &None));
    assert!(set.test_cases.is_empty());
    let request = user.call(ListTestSetsRequest { project_id: project.id, page: None, filter: 0 });
    let (sets, _) = listed(user.sets().list_test_sets(request).await).await.unwrap();
    assert_eq!(sets, [entry]);
}

#[tokio::test]
async fn an_update_keeps_absent_fields_and_clears_null_fields() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let [a, b] = [user.case(&project, "a").await, user.case(&project, "b").await];
    let set = user.set(&project, &[&b, &a]).await;
    assert_eq!(identifiers(&set), ["b", "a"]);

    let changes = TestSetInput { tags: Some("x".into()), ..TestSetInput::default() };
    let tagged = user.update_set(&set, changes, &["Tags", "LastRunDuration"]).await.unwrap();
    assert_eq!(tagged.name, "Nightly");
    assert_eq!(tagged.tags.as_deref(), Some("x"));
    assert_eq!(identifiers(&tagged), ["b", "a"]);
    let cleared = user.update_set(&tagged, TestSetInput::default(), &["Tags"]).await.unwrap();
    assert_eq!(cleared.tags, None);
    let stale = user.update_set(&tagged, TestSetInput::default(), &["Tags"]).await;
    assert_eq!(fault(stale), "stale_data_version");
    for endless in [f64::INFINITY, 1e300] {
        let endless = TestSetInput { time_out: endless, ..TestSetInput::default() };
        assert_eq!(
            invalid_fields(user.update_set(&cleared, endless, &["TimeOut", "Name"]).await),
            ["Name", "TimeOut"]
        );
    }
    assert_eq!(user.get_set(&set.id).await.unwrap(), cleared);
}

#[tokio::test]
async fn members_are_replaced_in_the_order_given() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let [a, b, c] = [
        user.case(&project, "a").await,
        user.case(&project, "b").await,
        user.case(&project, "c").await,
    ];
    let set = user.set(&project, &[&a, &b]).await;
    let set = replace(&user, &set, references(&[&c, &a, &c])).await.unwrap();
    assert_eq!(identifiers(&set), ["c", "a"]);
    let set = replace(&user, &set, references(&[&a, &b, &c])).await.unwrap();
    assert_eq!(identifiers(&set), ["a", "b", "c"]);
    let set = replace(&user, &set, Vec::new()).await.unwrap();
    assert_eq!(identifiers(&set), Vec::<&str>::new());
}

#[tokio::test]
async fn included_cases_are_appended_once() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let [a, b, c] = [
        user.case(&project, "a").await,
        user.case(&project, "b").await,
        user.case(&project, "c").await,
    ];
    let set = user.set(&project, &[&b]).await;
    let included = include(&user, &set, references(&[&c, &b, &a, &c])).await.unwrap();
    assert_eq!(identifiers(&included), ["b", "c", "a"]);
    assert_ne!(included.data_version, set.data_version);
    let events = world.events().await.len();
    assert_eq!(include(&user, &set, references(&[&a, &b])).await.unwrap(), included);
    assert_eq!(world.events().await.len(), events);

    exclude(&user, &set, references(&[&b, &a])).await.unwrap();
    let excluded = user.get_set(&set.id).await.unwrap();
    assert_eq!(identifiers(&excluded), ["c"]);
    exclude(&user, &set, references(&[&b])).await.unwrap();
    assert_eq!(user.get_set(&set.id).await.unwrap(), excluded);
    let again = include(&user, &set, references(&[&b])).await.unwrap();
    assert_eq!(identifiers(&again), ["c", "b"]);
}

#[tokio::test]
async fn only_active_cases_of_the_project_can_be_members() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let [a, archived] = [user.case(&project, "a").await, user.case(&project, "archived").await];
    user.archive_case(&archived).await;
    let foreign = user.case(&user.project().await, "foreign").await;
    let set = user.set(&project, &[]).await;
    let unknown = Reference { id: "01890a5d-ac96-774b-bcce-b302099a8057".into() };
    let nonsense = Reference { id: "nonsense".into() };

    let named = [references(&[&a, &archived, &foreign]), vec![unknown.clone()]].concat();
    let fields = ["1/Id", "2/Id", "3/Id"];
    assert_eq!(invalid_fields(include(&user, &set, named.clone()).await), fields);
    let fields = fields.map(|field| format!("TestCases/{field}"));
    assert_eq!(invalid_fields(replace(&user, &set, named.clone()).await), fields);
    let input = TestSetInput { name: "x".into(), test_cases: named, ..TestSetInput::default() };
    assert_eq!(invalid_fields(user.create_set(&project, input).await), fields);
    assert_eq!(invalid_fields(include(&user, &set, vec![nonsense]).await), ["0/Id"]);
    assert_eq!(
        invalid_fields(
            exclude(&user, &set, [references(&[&a, &archived]), vec![unknown]].concat()).await
        ),
        ["2/Id"]
    );
    assert_eq!(user.get_set(&set.id).await.unwrap(), set);
}

#[tokio::test]
async fn an_unarchived_case_returns_to_its_position_in_the_set() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let [a, b] = [user.case(&project, "a").await, user.case(&project, "b").await];
    let set = user.set(&project, &[&a, &b]).await;
    let archived = user.archive_case(&a).await;
    let seen = user.get_set(&set.id).await.unwrap();
    assert_eq!(identifiers(&seen), ["b"]);
    let back = TestCaseInput::default();
    user.update_case(&archived, back, &["Archived"]).await.unwrap();
    assert_eq!(identifiers(&user.get_set(&set.id).await.unwrap()), ["a", "b"]);
}

#[tokio::test]
async fn included_cases_are_listed_in_pages_in_the_order_of_the_set() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let mut cases = Vec::new();
    for identifier in ["d", "a", "c", "b", "e"] {
        cases.push(user.case(&project, identifier).await);
    }
    let set = user.set(&project, &cases.iter().collect::<Vec<_>>()).await;
    let list = async |page| {
        let request = user.call(ListIncludedTestCasesRequest {
            project_id: project.id.clone(),
            test_set_id: set.id.clone(),
            page,
        });
        let answer = user.sets().list_included_test_cases(request).await;
        let (cases, next) = listed(answer).await?;
        Ok((cases.into_iter().map(|case| case.identifier).collect::<Vec<_>>(), next))
    };
    assert_eq!(list(None).await.unwrap().0, ["d", "a", "c", "b", "e"]);
    let (first, next) = list(Some(page(2, None))).await.unwrap();
    assert_eq!(first, ["d", "a"]);
    let (second, next) = list(Some(page(3, next))).await.unwrap();
    assert_eq!((second.as_slice(), next), (["c", "b", "e"].map(String::from).as_slice(), None));
    for cursor in ["nonsense", "01890a5d-ac96-774b-bcce-b302099a8057"] {
        assert_eq!(invalid_fields(list(Some(page(2, Some(cursor.into())))).await), ["cursor"]);
    }
    let request = user.call(ListIncludedTestCasesRequest {
        project_id: user.project().await.id,
        test_set_id: set.id.clone(),
        page: None,
    });
    assert_eq!(fault(user.sets().list_included_test_cases(request).await), "not_found");
}

/// Inserts many cases directly into the database; returns their ids in the order of creation.
async fn many_cases(world: &World, user: &User, project: &Project, count: i32) -> Vec<String> {
    sqlx::query_scalar(
        "insert into test_case (customer_id, project_id, id, identifier, name, description)
         select $1, $2, gen_random_uuid(), 'case-' || n, 'Case', repeat('x', 1024)
         from generate_series(1, $3) n
         returning id::text",
    )
    .bind(user.identity.customer)
    .bind(project.id.parse::<uuid::Uuid>().unwrap())
    .bind(count)
    .fetch_all(&world.db)
    .await
    .unwrap()
}

#[tokio::test]
async fn a_set_of_10_000_cases_is_written_within_10_seconds_and_streamed() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let set = user.set(&project, &[]).await;
    let mut ids = many_cases(&world, &user, &project, 10_000).await;
    let references =
        |ids: &[String]| ids.iter().map(|id| Reference { id: id.clone() }).collect::<Vec<_>>();
    let seen =
        |set: &TestSet| set.test_cases.iter().map(|case| case.id.clone()).collect::<Vec<_>>();

    let started = Instant::now();
    // The answer exceeds the size limit of a message.
    let included = include(&user, &set, references(&ids)).await.unwrap();
    assert_eq!(seen(&included), ids);
    ids.reverse();
    let replaced = replace(&user, &included, references(&ids)).await.unwrap();
    assert_eq!(seen(&replaced), ids);
    exclude(&user, &set, references(&ids[..9_999])).await.unwrap();
    assert_eq!(seen(&user.get_set(&set.id).await.unwrap()), ids[9_999..]);
    let elapsed = started.elapsed();
    // A generous limit: it detects a query per case, not a slow machine.
    assert!(elapsed.as_secs() < 10, "elapsed: {elapsed:?}");
}

#[tokio::test]
async fn too_many_test_cases_in_a_request_are_rejected_with_the_field() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let case = user.case(&project, "a").await;
    let set = user.set(&project, &[&case]).await;
    // More than the default size limit of a gRPC message.
    let test_cases = vec![Reference { id: case.id.clone() }; 110_000];
    let changes = TestSetInput { test_cases, ..TestSetInput::default() };
    assert_eq!(invalid_fields(user.update_set(&set, changes, &["TestCases"]).await), ["TestCases"]);
}
