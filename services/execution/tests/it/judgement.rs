//! Judgements by history: a flaky test is not new, and a regression of a stable one always is.

use anyhow::Result;
use assay_proto::{
    ResultChange,
    catalog::{GateInput, TestSetInput},
    execution::{Execution, GetVerdictRequest, OpenExecutionInput, TestReportEntry, VerdictState},
};
use serde_json::{Value, json};

use crate::{
    changes::{counts, failed, passed, reports, run},
    world::World,
};

/// Runs a test once for each letter, the first one first: `P` passes, `F` fails and `R` passes on a retry.
async fn runs(world: &World, branch: &str, letters: &str) -> Result<Execution> {
    let mut last = Execution::default();
    for letter in letters.chars() {
        last = run(world, branch, results("a", letter)).await?;
    }
    Ok(last)
}

fn results(test: &str, letter: char) -> Value {
    let attempt = |mut result: Value, attempt| {
        result["Attempt"] = json!(attempt);
        result
    };
    match letter {
        'P' => json!([passed(test)]),
        'F' => json!([failed(test, "lost")]),
        _ => json!([attempt(failed(test, "lost"), 1), attempt(passed(test), 2)]),
    }
}

/// Returns the change of the only test of an execution, and its reason.
async fn judged(world: &World, execution: &Execution) -> Result<(ResultChange, String)> {
    let reports = reports(world, execution).await?;
    Ok((reports[0].change(), reports[0].change_reason.clone()))
}

#[tokio::test]
async fn failures_are_judged_by_the_history_of_their_test() -> Result<()> {
    for (history, change, reason) in [
        ("F", ResultChange::New, "never ran before"),
        ("PPPF", ResultChange::New, "passed in all of its last 3 runs"),
        (
            "PFPPF",
            ResultChange::New,
            "passed before; 1 failure in its last 4 runs do not make it flaky",
        ),
        (
            "PFFFPF",
            ResultChange::New,
            "passed before; 3 failures in its last 5 runs do not make it flaky",
        ),
        ("PFPFP", ResultChange::Fixed, "failed before, and was not flaky"),
        ("PFPFPFP", ResultChange::None, ""),
        (
            "PFPFFPF",
            ResultChange::Flaky,
            "failed in 3 of its last 6 runs, and recovered 2 times, so this is not new",
        ),
        ("PFPFPFFF", ResultChange::Still, "fails for the 3rd time in a row"),
        (
            "PFPFPFFFFFFFF",
            ResultChange::New,
            "fails for the 8th time in a row, which its flakiness does not explain",
        ),
        ("PFPFPFFFFFFFFF", ResultChange::Still, "fails for the 9th time in a row"),
        ("PFFFFFFFF", ResultChange::Still, "fails for the 8th time in a row"),
        (
            "PRPF",
            ResultChange::Flaky,
            "passed on a retry within its last 3 runs, so this is not new",
        ),
        ("PR", ResultChange::Flaky, "passed on a retry"),
        ("PF", ResultChange::New, "passed in all of its last 1 run"),
        ("PFF", ResultChange::Still, "fails for the 2nd time in a row"),
        ("PFFP", ResultChange::Fixed, "failed before, and was not flaky"),
    ] {
        let world = World::new().await?;
        let last = runs(&world, "main", history).await?;
        assert_eq!(judged(&world, &last).await?, (change, reason.to_owned()), "{history}");
        assert_eq!(world.differences().await?, 0, "{history}");
    }
    Ok(())
}

#[tokio::test]
async fn a_branch_knows_what_is_flaky_on_the_default_branch() -> Result<()> {
    let world = World::new().await?;
    runs(&world, "main", "PFPFP").await?;
    let branch = runs(&world, "feature", "F").await?;
    assert_eq!(judged(&world, &branch).await?.0, ResultChange::Flaky);

    // The default branch passes in between, and yet a failure that stays on a branch is not a short break.
    let world = World::new().await?;
    for _ in 0..3 {
        runs(&world, "main", "P").await?;
        runs(&world, "broken", "F").await?;
    }
    let other = runs(&world, "other", "F").await?;
    assert_eq!(judged(&world, &other).await?.0, ResultChange::New);
    assert_eq!(world.differences().await?, 0);
    Ok(())
}

#[tokio::test]
async fn results_that_are_shown_in_a_row_are_of_one_branch() -> Result<()> {
    let world = World::new().await?;
    runs(&world, "main", "FPP").await?;
    let first = runs(&world, "feature", "F").await?;
    assert_eq!(reports(&world, &first).await?[0].history, "FPP", "it has no runs of its own");
    let second = runs(&world, "feature", "F").await?;
    assert_eq!(reports(&world, &second).await?[0].history, "F", "the default branch ran before");
    Ok(())
}

#[tokio::test]
async fn a_test_that_passed_and_failed_on_one_commit_is_flaky() -> Result<()> {
    let world = World::new().await?;
    let on = async |commit: &str, letter: char| {
        let input = OpenExecutionInput {
            project: "Shop".to_owned(),
            test_set: "Nightly".to_owned(),
            branch: Some("main".to_owned()),
            commit: Some(commit.to_owned()),
            ..OpenExecutionInput::default()
        };
        let execution = world.open(input).await?;
        world.report(&execution.id, results("a", letter)).await?;
        anyhow::Ok(world.complete(&execution.id).await?)
    };
    on("8f3c", 'P').await?;
    let again = on("8f3c", 'F').await?;
    let reason = "passed and failed on one commit, so this is not new".to_owned();
    assert_eq!(judged(&world, &again).await?, (ResultChange::Flaky, reason));
    let later = on("b8a3", 'F').await?;
    assert_eq!(judged(&world, &later).await?.0, ResultChange::Flaky);
    Ok(())
}

#[tokio::test]
async fn another_cause_of_a_broken_test_is_shown_and_fails_the_gate() -> Result<()> {
    let world = World::new().await?;
    run(&world, "main", json!([passed("a"), passed("b")])).await?;
    run(&world, "main", json!([failed("a", "lost"), failed("b", "lost")])).await?;
    let other = json!([failed("a", "expected 200, got 503"), failed("b", "lost")]);
    let other = run(&world, "main", other).await?;
    let changes: Vec<_> =
        reports(&world, &other).await?.iter().map(TestReportEntry::change).collect();
    assert_eq!(changes, [ResultChange::CauseChanged, ResultChange::Still]);
    let verdict = verdict(&world, &other).await?;
    assert_eq!(verdict.state(), VerdictState::Failed);
    assert_eq!(verdict.new_failures.len(), 1);

    // Both causes are known now.
    let back = run(&world, "main", json!([failed("a", "lost"), failed("b", "lost")])).await?;
    assert_eq!(counts(&world, &back).await?, [0, 2, 0, 0, 2]);
    assert_eq!(world.differences().await?, 0);
    assert_eq!(assay_execution::rebuild(&world.db).await?, 0);
    Ok(())
}

#[tokio::test]
async fn gates_set_the_thresholds_and_flaky_tests_do_not_fail_them() -> Result<()> {
    let world = World::new().await?;
    let flaky = runs(&world, "main", "PFPFPF").await?;
    let passing = verdict(&world, &flaky).await?;
    assert_eq!(passing.state(), VerdictState::Passed, "{:?}", passing.rules);

    let gate = GateInput { flaky_after_breaks: Some(5), ..GateInput::default() };
    let set = TestSetInput { gate: Some(gate), ..TestSetInput::default() };
    world.change_set(set, &["Gate"]).await?;
    let strict = runs(&world, "main", "PF").await?;
    assert_eq!(judged(&world, &strict).await?.0, ResultChange::New);
    assert_eq!(verdict(&world, &strict).await?.state(), VerdictState::Failed);
    assert_eq!(world.differences().await?, 0);
    Ok(())
}

#[tokio::test]
async fn an_outage_says_nothing_about_tests() -> Result<()> {
    let world = World::new().await?;
    let all = |letter| {
        let names = (0..12).map(|number| format!("test {number}"));
        names.flat_map(|name| results(&name, letter).as_array().unwrap().clone()).collect()
    };
    run(&world, "main", all('P')).await?;
    for _ in 0..2 {
        run(&world, "main", all('F')).await?;
        let recovered = run(&world, "main", all('P')).await?;
        assert_eq!(counts(&world, &recovered).await?, [0; 5], "nothing was fixed");
    }
    let failed = run(&world, "main", results("test 0", 'F')).await?;
    assert_eq!(judged(&world, &failed).await?.0, ResultChange::New, "and nothing is flaky");
    assert_eq!(world.differences().await?, 0);
    Ok(())
}

/// Returns the verdict of an execution.
pub(crate) async fn verdict(
    world: &World,
    execution: &Execution,
) -> Result<assay_proto::execution::Verdict> {
    let request = GetVerdictRequest { project_id: None, execution_id: execution.id.clone() };
    Ok(world.executions().get_verdict(world.user.call(request)).await?.into_inner())
}
