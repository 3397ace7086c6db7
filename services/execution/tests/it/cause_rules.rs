//! Rules of a project for the causes of its failures.

mod incidents;
mod order;
mod recount;

use anyhow::Result;
use assay_proto::{
    Batch,
    execution::{
        CauseRule, CauseRuleInput, CauseRulePreview, CreateCauseRuleRequest,
        CreateKnownFailureInput, DeleteCauseRuleRequest, Execution, ListCauseRulesRequest,
        PreviewCauseRuleRequest,
    },
};
use futures::TryStreamExt;
use serde_json::json;
use tonic::{Code, Status};

use crate::{
    changes::{failed, reports, run, summary},
    known_failures::{create as make_known, in_days, reviewer},
    world::{World, fields},
};

fn pattern(pattern: &str) -> CauseRuleInput {
    CauseRuleInput { pattern: Some(pattern.to_owned()), ..Default::default() }
}

fn same(one: &str, other: &str) -> CauseRuleInput {
    let (one, other) = (one.to_owned(), other.to_owned());
    CauseRuleInput { fingerprint: Some(one), same_as: Some(other), ..Default::default() }
}

async fn create(world: &World, input: CauseRuleInput) -> Result<CauseRule, Status> {
    let request =
        CreateCauseRuleRequest { project_id: world.project.clone(), cause_rule: Some(input) };
    let request = reviewer(world).await.call(request);
    Ok(world.cause_rules().create_cause_rule(request).await?.into_inner())
}

async fn preview(world: &World, input: CauseRuleInput) -> Result<CauseRulePreview, Status> {
    let request =
        PreviewCauseRuleRequest { project_id: world.project.clone(), cause_rule: Some(input) };
    Ok(world.cause_rules().preview_cause_rule(world.user.call(request)).await?.into_inner())
}

async fn delete(world: &World, rule: CauseRule) -> Result<(), Status> {
    let request = DeleteCauseRuleRequest { project_id: world.project.clone(), id: rule.id };
    let request = reviewer(world).await.call(request);
    world.cause_rules().delete_cause_rule(request).await.map(drop)
}

/// Derives the causes again, as the task of the service does. `verify` finds nothing before and after.
async fn derive(world: &World) -> Result<()> {
    assert_eq!(world.differences().await?, 0, "causes that are still to be derived do not differ");
    while world.count("select count(*) from changed_causes").await? > 0 {
        assay_execution::derive_changed(&world.db).await?;
    }
    assert_eq!(world.differences().await?, 0);
    assert_eq!(assay_execution::rebuild(&world.db).await?, 0);
    Ok(())
}

/// Returns the fingerprints of the reports of an execution, in their order.
async fn causes(world: &World, execution: &Execution) -> Result<Vec<String>> {
    let entries = reports(world, execution).await?;
    Ok(entries.into_iter().map(|entry| entry.fingerprint).collect())
}

#[tokio::test]
async fn text_that_differs_between_runs_does_not_count() -> Result<()> {
    let world = World::new().await?;
    let stock = |customer: &str| format!("RuntimeError: no stock for customer {customer}");
    let results = json!([
        failed("a", &stock("Smith")),
        failed("b", &stock("Jones")),
        failed("c", "RuntimeError: no money")
    ]);
    let before = run(&world, "main", results).await?;
    let [smith, jones, money] = &causes(&world, &before).await?[..] else { panic!() };
    assert_ne!(smith, jones);
    let known = CreateKnownFailureInput {
        fingerprint: smith.clone(),
        every_case: true,
        muted_until: Some(in_days(30)),
        ..Default::default()
    };
    make_known(&world, known).await?;

    let found = preview(&world, pattern(r"for customer \S+")).await?;
    assert_eq!((found.examined, found.remaining, found.joined.len()), (3, 2, 1));
    let mut headlines: Vec<_> =
        found.joined[0].causes.iter().map(|cause| cause.headline.clone()).collect();
    headlines.sort_unstable();
    assert_eq!(headlines, [stock("Jones"), stock("Smith")]);
    assert_eq!(
        causes(&world, &before).await?.iter().collect::<Vec<_>>(),
        [smith, jones, money],
        "nothing has changed"
    );

    let rule = create(&world, pattern(r"for customer \S+")).await?;
    let after = json!([failed("a", &stock("Miller")), failed("c", "RuntimeError: no money")]);
    let after = run(&world, "main", after).await?;
    derive(&world).await?;
    let one = causes(&world, &after).await?[0].clone();
    assert_eq!(causes(&world, &before).await?.iter().collect::<Vec<_>>(), [&one, &one, money]);
    let later = run(&world, "main", json!([failed("d", &stock("Smith"))])).await?;
    let muted = summary(&world, &later).await?.changes.unwrap().muted;
    assert_eq!(muted, 1, "the known failure has moved to the joined cause");

    delete(&world, rule).await?;
    derive(&world).await?;
    assert_eq!(causes(&world, &before).await?.iter().collect::<Vec<_>>(), [smith, jones, money]);
    let later = run(&world, "main", json!([failed("d", &stock("Jones"))])).await?;
    assert_eq!(summary(&world, &later).await?.changes.unwrap().muted, 1, "both stay known");
    Ok(())
}

#[tokio::test]
async fn two_causes_become_one_and_two_again() -> Result<()> {
    let world = World::new().await?;
    let results =
        || json!([failed("a", "no bank"), failed("b", "bank is closed"), failed("c", "x")]);
    let before = run(&world, "main", results()).await?;
    let [one, other, third] = &causes(&world, &before).await?[..] else { panic!() };
    let found = preview(&world, same(one, other)).await?;
    assert_eq!((found.examined, found.remaining), (3, 2));

    let rule = create(&world, same(one, other)).await?;
    assert_eq!(rule.headline.as_deref(), Some("no bank"));
    assert_eq!(rule.same_headline.as_deref(), Some("bank is closed"));
    let after = run(&world, "main", results()).await?;
    derive(&world).await?;
    for execution in [&before, &after] {
        assert_eq!(
            causes(&world, execution).await?.iter().collect::<Vec<_>>(),
            [other, other, third]
        );
    }
    let circle = create(&world, same(other, one)).await.unwrap_err();
    assert_eq!(fields(&circle), ["SameAs"]);
    create(&world, same(other, third)).await?;
    derive(&world).await?;
    assert_eq!(causes(&world, &before).await?.iter().collect::<Vec<_>>(), [third, third, third]);

    delete(&world, rule).await?;
    derive(&world).await?;
    assert_eq!(causes(&world, &before).await?.iter().collect::<Vec<_>>(), [one, third, third]);
    Ok(())
}

#[tokio::test]
async fn joined_causes_stay_joined_when_a_pattern_changes_them() -> Result<()> {
    let world = World::new().await?;
    let results = |customer: &str| {
        let (one, other) =
            (format!("no bank for {customer}"), format!("bank of {customer} is closed"));
        json!([failed("a", &one), failed("b", &other)])
    };
    let before = run(&world, "main", results("Smith")).await?;
    let [one, other] = &causes(&world, &before).await?[..] else { panic!() };
    create(&world, same(one, other)).await?;
    derive(&world).await?;
    let known = CreateKnownFailureInput {
        fingerprint: other.clone(),
        every_case: true,
        muted_until: Some(in_days(30)),
        ..Default::default()
    };
    make_known(&world, known).await?;

    let rule = create(&world, pattern("Smith|Jones")).await?;
    let after = run(&world, "main", results("Jones")).await?;
    derive(&world).await?;

    let joined = causes(&world, &before).await?;
    assert_eq!(joined[0], joined[1]);
    assert_ne!(&joined[0], other, "the pattern has changed it");
    assert_eq!(causes(&world, &after).await?, joined);
    let later = run(&world, "main", results("Smith")).await?;
    assert_eq!(summary(&world, &later).await?.changes.unwrap().muted, 2);
    let changes: Vec<_> = world
        .events()
        .await?
        .into_iter()
        .filter(|(_, data)| data["Source"] == "KnownFailure")
        .map(|(_, data)| data["Action"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(changes, ["Created", "Created", "Deleted"], "it has followed its cause");

    delete(&world, rule).await?;
    derive(&world).await?;
    assert_eq!(causes(&world, &before).await?.iter().collect::<Vec<_>>(), [other, other]);
    Ok(())
}

#[tokio::test]
async fn rules_are_refused_with_reasons() -> Result<()> {
    let world = World::new().await?;
    let results = json!([failed("a", "no bank"), failed("b", "bank is closed")]);
    let execution = run(&world, "main", results).await?;
    let [one, other] = &causes(&world, &execution).await?[..] else { panic!() };
    let unknown = "0".repeat(32);
    for (field, input) in [
        ("Pattern", CauseRuleInput::default()),
        ("Pattern", pattern("x*")),
        ("Pattern", pattern("(a")),
        ("Pattern", pattern(r"(\pL{200}){200}")),
        ("SameAs", same(one, &unknown)),
        ("Fingerprint", same(&unknown, other)),
        ("SameAs", same(one, one)),
    ] {
        assert_eq!(fields(&create(&world, input.clone()).await.unwrap_err()), [field], "{input:?}");
    }
    let rule = create(&world, same(one, other)).await?;
    let twice = create(&world, same(one, other)).await.unwrap_err();
    assert_eq!(twice.code(), Code::AlreadyExists);
    let circle = create(&world, same(other, one)).await.unwrap_err();
    assert_eq!(fields(&circle), ["SameAs"]);
    for number in 0..49 {
        create(&world, pattern(&format!("shard-{number}"))).await?;
    }
    let many = create(&world, pattern("shard-x")).await.unwrap_err();
    assert!(many.message().contains("50 rules"), "{many}");

    let request = ListCauseRulesRequest { project_id: world.project.clone(), ..Default::default() };
    let listed = world.cause_rules().list_cause_rules(world.user.call(request)).await?;
    let batches: Vec<_> = listed.into_inner().try_collect().await?;
    let listed: Vec<CauseRule> = batches.iter().flat_map(|batch| batch.parse().unwrap()).collect();
    assert_eq!(listed.len(), 50);
    assert_eq!(listed.last(), Some(&rule));
    let denied = world.user.call(CreateCauseRuleRequest {
        project_id: world.project.clone(),
        cause_rule: Some(pattern("y")),
    });
    let denied = world.cause_rules().create_cause_rule(denied).await.unwrap_err();
    assert_eq!(denied.code(), Code::PermissionDenied);
    Ok(())
}
