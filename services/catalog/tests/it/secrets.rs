//! Secrets are stored encrypted, shown only with the permission, and kept when a mask is sent.

use assay_proto::{PlanStatus, Variable, VariableInput, catalog::*};
use sqlx::AssertSqlSafe;

use crate::{
    user::{User, web_page},
    world::{World, fault, invalid_fields, listed, take_snapshot, target},
};

pub(crate) const CANARY: &str = "canary-7f3a";
const MASK: &str = "********";

pub(crate) fn variable(name: &str, is_secured: bool, content: &str) -> VariableInput {
    VariableInput {
        name: name.into(),
        is_secured,
        content: content.into(),
        ..VariableInput::default()
    }
}

pub(crate) fn contents(variables: &[Variable]) -> Vec<&str> {
    variables.iter().map(|variable| variable.content.as_str()).collect()
}

/// A colleague of the user with permission to read secrets.
pub(crate) async fn insider(world: &World, user: &User) -> User {
    world.colleague(user, "Read, Write, Execute, AccessSecrets").await
}

#[tokio::test]
async fn secrets_are_encrypted_in_the_database_and_masked_in_answers() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let variables = vec![variable("token", true, CANARY)];
    let subject = SubjectInput { variables: variables.clone(), ..web_page() };
    let subject = user.create_subject(&project, subject).await.unwrap();
    let environment = EnvironmentInput {
        name: "Lab".into(),
        password: CANARY.into(),
        ..EnvironmentInput::default()
    };
    let environment = user.create_environment(&project, environment).await.unwrap();
    let case = user.case(&project, "login").await;
    let plan = TestPlanInput { variables, ..TestPlanInput::default() };
    let plan = user.create_plan(&case, plan).await.unwrap();

    let tables: Vec<String> =
        sqlx::query_scalar("select tablename::text from pg_tables where schemaname = 'public'")
            .fetch_all(&world.db)
            .await
            .unwrap();
    assert!(tables.len() > 10);
    for table in tables {
        let rows = format!("select coalesce(string_agg(row::text, ' '), '') from \"{table}\" row");
        let dump: String =
            sqlx::query_scalar(AssertSqlSafe(rows)).fetch_one(&world.db).await.unwrap();
        assert!(!dump.contains(CANARY), "{table} contains the secret");
    }

    assert_eq!(environment.password, MASK);
    assert_eq!(contents(&plan.variables), [MASK]);
    assert_eq!(contents(&user.get_subject(&project, &subject.id).await.variables), [MASK]);
    let insider = insider(&world, &user).await;
    assert_eq!(insider.get_environment(&project, &environment.id).await.password, CANARY);
    assert_eq!(contents(&insider.get_plan(&plan.id).await.variables), [CANARY]);
    assert_eq!(contents(&insider.get_subject(&project, &subject.id).await.variables), [CANARY]);
}

#[tokio::test]
async fn lists_mask_passwords_too() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    for password in [CANARY, ""] {
        let environment = EnvironmentInput {
            name: "Lab".into(),
            password: password.into(),
            ..EnvironmentInput::default()
        };
        user.create_environment(&project, environment).await.unwrap();
    }
    for (user, expected) in [(user.clone(), MASK), (insider(&world, &user).await, CANARY)] {
        let request = user.call(ListEnvironmentsRequest {
            project_id: project.id.clone(),
            page: None,
            archived: false,
        });
        let (list, _) = listed(user.environments().list_environments(request).await).await.unwrap();
        let passwords: Vec<_> = list.iter().map(|entry| entry.password.as_str()).collect();
        assert_eq!(passwords, ["", expected]);
    }
}

#[tokio::test]
async fn reading_a_secret_publishes_an_audit_event() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let environment = EnvironmentInput {
        name: "Lab".into(),
        password: CANARY.into(),
        ..EnvironmentInput::default()
    };
    let environment = user.create_environment(&project, environment).await.unwrap();
    let open = user.environment(&project).await;
    let insider = insider(&world, &user).await;
    user.get_environment(&project, &environment.id).await;
    insider.get_environment(&project, &open.id).await;
    insider.get_environment(&project, &environment.id).await;

    let events = world.events().await;
    let seen: Vec<_> = events.iter().filter(|(_, action, _)| action == "seen").collect();
    let [(noun, _, data)] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!(noun, "secrets");
    assert_eq!(data["Source"], "Environment");
    assert_eq!(data["SourceId"], environment.id);
    assert_eq!(data["UserId"], insider.identity.user.to_string());
}

#[tokio::test]
async fn a_mask_in_an_update_keeps_the_secret() {
    let world = World::start().await;
    let user = world.user().await;
    let insider = insider(&world, &user).await;
    let project = user.project().await;
    let input = SubjectInput {
        variables: vec![
            variable("a", true, "one"),
            variable("b", true, "two"),
            variable("c", false, "x"),
        ],
        ..web_page()
    };
    let subject = user.create_subject(&project, input).await.unwrap();
    let subject = user.get_subject(&project, &subject.id).await;
    assert_eq!(contents(&subject.variables), [MASK, MASK, "x"]);

    // In another order, with one of them changed.
    let changes = SubjectInput {
        variables: vec![
            variable("c", true, "x"),
            variable("b", true, MASK),
            variable("a", true, "1"),
        ],
        ..web_page()
    };
    let subject = user.update_subject(&subject, changes, &["Variables"]).await.unwrap();
    assert_eq!(contents(&subject.variables), [MASK; 3]);
    let seen = insider.get_subject(&project, &subject.id).await;
    assert_eq!(contents(&seen.variables), ["x", "two", "1"]);

    // An update of other fields keeps all secrets.
    user.update_subject(&subject, web_page(), &["Name"]).await.unwrap();
    let seen = insider.get_subject(&project, &subject.id).await;
    assert_eq!(contents(&seen.variables), ["x", "two", "1"]);
}

#[tokio::test]
async fn a_mask_without_a_stored_secret_is_rejected() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let input = SubjectInput { variables: vec![variable("a", true, MASK)], ..web_page() };
    assert_eq!(invalid_fields(user.create_subject(&project, input).await), ["Variables/0/Content"]);
    let environment = EnvironmentInput {
        name: "Lab".into(),
        password: MASK.into(),
        ..EnvironmentInput::default()
    };
    assert_eq!(invalid_fields(user.create_environment(&project, environment).await), ["Password"]);

    let twins =
        vec![variable("a", false, "1"), variable("a", false, "2"), variable("", false, "3")];
    let input = SubjectInput { variables: twins, ..web_page() };
    assert_eq!(
        invalid_fields(user.create_subject(&project, input).await),
        ["Variables/1/Name", "Variables/2/Name"]
    );
}

#[tokio::test]
async fn making_a_variable_unsecured_does_not_reveal_its_secret() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let input = SubjectInput { variables: vec![variable("a", true, CANARY)], ..web_page() };
    let subject = user.create_subject(&project, input).await.unwrap();
    let subject = user.get_subject(&project, &subject.id).await;
    let open = SubjectInput { variables: vec![variable("a", false, MASK)], ..web_page() };
    assert_eq!(
        invalid_fields(user.update_subject(&subject, open, &["Variables"]).await),
        ["Variables/0/Content"]
    );
    let open = SubjectInput { variables: vec![variable("a", false, "known")], ..web_page() };
    let subject = user.update_subject(&subject, open, &["Variables"]).await.unwrap();
    assert_eq!(contents(&subject.variables), ["known"]);
    let secured = SubjectInput { variables: vec![variable("a", true, MASK)], ..web_page() };
    let subject = user.update_subject(&subject, secured, &["Variables"]).await.unwrap();
    assert_eq!(contents(&subject.variables), [MASK]);
    let seen = insider(&world, &user).await.get_subject(&project, &subject.id).await;
    assert_eq!(contents(&seen.variables), ["known"]);
}

#[tokio::test]
async fn a_mask_keeps_the_password_and_other_text_replaces_it() {
    let world = World::start().await;
    let user = world.user().await;
    let insider = insider(&world, &user).await;
    let project = user.project().await;
    let environment = EnvironmentInput {
        name: "Lab".into(),
        password: CANARY.into(),
        ..EnvironmentInput::default()
    };
    let id = user.create_environment(&project, environment).await.unwrap().id;
    for (password, expected) in [(MASK, CANARY), ("other", "other"), ("", "")] {
        let environment = user.get_environment(&project, &id).await;
        let changes = EnvironmentInput { password: password.into(), ..EnvironmentInput::default() };
        user.update_environment(&environment, changes, &["Password"]).await.unwrap();
        assert_eq!(insider.get_environment(&project, &id).await.password, expected);
    }
}

#[tokio::test]
async fn unchanged_secrets_are_accepted_in_an_update_of_an_executed_plan() {
    let world = World::start().await;
    let user = world.user().await;
    let insider = insider(&world, &user).await;
    let project = user.project().await;
    let case = user.case(&project, "login").await;
    let plan = TestPlanInput {
        variables: vec![variable("a", true, CANARY), variable("b", false, "x")],
        ..TestPlanInput::default()
    };
    let plan = user.create_plan(&case, plan).await.unwrap();
    let mut ready = TestPlanInput::default();
    ready.set_status(PlanStatus::ReadyForExecution);
    user.update_plan(&case, &plan, ready, &["Status"]).await.unwrap();
    let set = user.set(&project, &[&case]).await;
    take_snapshot(&user, target(&set), false).await.unwrap();

    for user in [&user, &insider] {
        let plan = user.get_plan(&plan.id).await;
        let again = |shown: &Variable| variable(&shown.name, shown.is_secured, &shown.content);
        let variables = plan.variables.iter().map(again).collect();
        let changes = TestPlanInput { variables, ..TestPlanInput::default() };
        user.update_plan(&case, &plan, changes, &["Variables"]).await.unwrap();
    }
    assert_eq!(contents(&insider.get_plan(&plan.id).await.variables), [CANARY, "x"]);
    let plan = user.get_plan(&plan.id).await;
    for (user, guess) in [(&user, CANARY), (&insider, "wrong")] {
        let changes = TestPlanInput {
            variables: vec![variable("a", true, guess), variable("b", false, "x")],
            ..TestPlanInput::default()
        };
        let answer = user.update_plan(&case, &plan, changes, &["Variables"]).await;
        assert_eq!(fault(answer), "test_plan_frozen");
    }
}

#[tokio::test]
async fn contents_match_their_rules_and_rules_reveal_no_secrets() {
    let world = World::start().await;
    let user = world.user().await;
    let insider = insider(&world, &user).await;
    let project = user.project().await;
    let with_rule = |rule: &str, content: &str| {
        let rule =
            VariableInput { validation_rule: rule.into(), ..variable("token", true, content) };
        SubjectInput { variables: vec![rule], ..web_page() }
    };
    let rejected_fields =
        |fields: &[&str]| fields.iter().map(|f| (*f).to_owned()).collect::<Vec<_>>();
    let wrong = user.create_subject(&project, with_rule("^[0-9]+$", "abc")).await;
    assert_eq!(invalid_fields(wrong), rejected_fields(&["Variables/0/Content"]));
    let none = user.create_subject(&project, with_rule("(", "abc")).await;
    assert_eq!(invalid_fields(none), rejected_fields(&["Variables/0/ValidationRule"]));

    let subject = user.create_subject(&project, with_rule("^[a-z]+$", "abc")).await.unwrap();
    let subject = user.get_subject(&project, &subject.id).await;
    let same = user.update_subject(&subject, with_rule("^[a-z]+$", MASK), &["Variables"]).await;
    let subject = same.unwrap();
    for guess in ["^a", "^b"] {
        let guess = user.update_subject(&subject, with_rule(guess, MASK), &["Variables"]).await;
        assert_eq!(invalid_fields(guess), rejected_fields(&["Variables/0/ValidationRule"]));
    }
    let seen = insider.update_subject(&subject, with_rule("^b", MASK), &["Variables"]).await;
    assert_eq!(invalid_fields(seen), rejected_fields(&["Variables/0/ValidationRule"]));
    let seen = insider.update_subject(&subject, with_rule("^a", MASK), &["Variables"]).await;
    assert_eq!(contents(&seen.unwrap().variables), ["abc"]);
}
