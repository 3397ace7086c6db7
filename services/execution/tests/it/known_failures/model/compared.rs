//! Performs the steps of a history at the service and at its model, and compares what both say.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use assay_proto::{
    ResultChange,
    execution::{
        CreateKnownFailureInput, DeleteKnownFailureRequest, Execution, KnownFailureInput,
        MuteInput, ReviewInput, TestReportEntry, UpdateKnownFailureRequest,
    },
};
use serde_json::{Value, json};

use super::{Attempts, CASES, CAUSES, Known, Model, Results, Step};
use crate::{
    changes::{open, reports, summary},
    judgement::verdict,
    known_failures::{accepted, create, in_days, known, review, reviewer},
    world::World,
};

/// The service beside its model.
pub(super) struct Compared {
    world: World,
    model: Model,
    executions: Vec<Execution>,
    fingerprints: BTreeMap<usize, String>,
    cases: BTreeMap<usize, String>,
}

impl Compared {
    pub(super) async fn new() -> Result<Self> {
        Ok(Self {
            world: World::new().await?,
            model: Model::default(),
            executions: Vec::new(),
            fingerprints: BTreeMap::new(),
            cases: BTreeMap::new(),
        })
    }

    pub(super) async fn perform(&mut self, step: &Step) -> Result<()> {
        match step {
            Step::Run(results) => self.run(results, None).await,
            Step::RunInTwo { first, known, days, rest } => {
                self.run(first, Some((*known, *days, rest))).await
            }
            Step::Create(known) => self.create(*known).await,
            Step::Move { known, days } => self.end(*known, *days).await,
            Step::Delete { known } => self.delete(*known).await,
            Step::Review { execution, cause, every_case } => {
                self.review(*execution, *cause, *every_case).await
            }
        }
    }

    /// Runs results, and then others after the end of a known failure was set.
    async fn run(&mut self, results: &Results, then: Option<(usize, i64, &Results)>) -> Result<()> {
        let execution = open(&self.world, "main").await?;
        self.model.executions.push(BTreeMap::new());
        self.report(&execution, results).await?;
        if let Some((known, days, rest)) = then {
            self.end(known, days).await?;
            self.report(&execution, rest).await?;
        }
        let execution = self.world.complete(&execution.id).await?;
        for entry in reports(&self.world, &execution).await? {
            let case = CASES.iter().position(|case| *case == entry.test_case_identifier);
            self.cases.insert(case.unwrap(), entry.test_case_id);
        }
        let causes: Vec<(String, String)> =
            sqlx::query_as("select distinct headline, encode(fingerprint, 'hex') from failure")
                .fetch_all(&self.world.db)
                .await?;
        for (headline, fingerprint) in causes {
            let cause = CAUSES.iter().position(|cause| *cause == headline);
            self.fingerprints.insert(cause.unwrap(), fingerprint);
        }
        self.executions.push(execution);
        Ok(())
    }

    async fn report(&mut self, execution: &Execution, results: &Results) -> Result<()> {
        let sent: Vec<Value> = results.iter().flat_map(sent).collect();
        self.world.report(&execution.id, json!(sent)).await?;
        self.model.report(results);
        Ok(())
    }

    async fn create(&mut self, (cause, test): Known) -> Result<()> {
        let model = &mut self.model;
        let is_seen =
            |seen: &(usize, usize)| seen.0 == cause && test.is_none_or(|one| one == seen.1);
        let exists = model.known.iter().any(|(known, _)| *known == (cause, test));
        if exists || !model.seen.iter().any(is_seen) {
            return Ok(());
        }
        let input = CreateKnownFailureInput {
            fingerprint: self.fingerprints[&cause].clone(),
            test_case_id: test.map(|test| self.cases[&test].clone()),
            every_case: test.is_none(),
            muted_until: Some(in_days(30)),
            ..Default::default()
        };
        create(&self.world, input).await?;
        model.known.push(((cause, test), true));
        Ok(())
    }

    /// Returns the id and the version of a known failure.
    async fn stored(&self, (cause, test): Known) -> Result<(String, String)> {
        let is_sought = |fingerprint: &str, of: Option<&String>| {
            fingerprint == self.fingerprints[&cause] && of == test.map(|test| &self.cases[&test])
        };
        let mut all = known(&self.world).await?.into_iter();
        let one = all.find(|one| is_sought(&one.fingerprint, one.test_case_id.as_ref())).unwrap();
        Ok((one.id, one.data_version))
    }

    async fn end(&mut self, nr: usize, days: i64) -> Result<()> {
        let Some((known, _)) = self.model.known.get(nr).copied() else { return Ok(()) };
        let (id, version) = self.stored(known).await?;
        let until = Some(in_days(days));
        let request = UpdateKnownFailureRequest {
            project_id: self.world.project.clone(),
            id,
            data_version: Some(version),
            changes: Some(KnownFailureInput { muted_until: until, ..Default::default() }),
            fields: vec!["MutedUntil".to_owned()],
        };
        let request = reviewer(&self.world).await.call(request);
        self.world.known_failures().update_known_failure(request).await?;
        self.model.known[nr].1 = days > 0;
        Ok(())
    }

    async fn delete(&mut self, nr: usize) -> Result<()> {
        let Some((known, _)) = self.model.known.get(nr).copied() else { return Ok(()) };
        let (id, _) = self.stored(known).await?;
        let request = DeleteKnownFailureRequest { project_id: self.world.project.clone(), id };
        let request = reviewer(&self.world).await.call(request);
        self.world.known_failures().delete_known_failure(request).await?;
        self.model.known.remove(nr);
        Ok(())
    }

    async fn review(&mut self, execution: usize, cause: usize, every_case: bool) -> Result<()> {
        let (Some(stored), Some(fingerprint)) =
            (self.executions.get(execution), self.fingerprints.get(&cause))
        else {
            return Ok(());
        };
        let input = ReviewInput {
            fingerprint: Some(fingerprint.clone()),
            known: Some(MuteInput { every_case, muted_until: Some(in_days(7)) }),
            ..accepted()
        };
        review(&self.world, stored, input).await?;
        self.model.review(execution, cause, every_case);
        Ok(())
    }

    /// Compares the reports, the counts and the verdict of every execution.
    pub(super) async fn compare(&self) -> Result<()> {
        for (execution, expected) in self.executions.iter().zip(&self.model.executions) {
            let entries = reports(&self.world, execution).await?;
            let muted = |entry: &&TestReportEntry| entry.is_muted;
            let shown: Vec<&str> = entries
                .iter()
                .filter(muted)
                .map(|entry| entry.test_case_identifier.as_str())
                .collect();
            let mut expected: Vec<&str> = expected
                .iter()
                .filter(|(_, failing)| failing.is_muted())
                .map(|(case, _)| CASES[*case])
                .collect();
            let mut sorted = shown.clone();
            sorted.sort_unstable();
            expected.sort_unstable();
            ensure!(sorted == expected, "muted are {sorted:?} instead of {expected:?}");
            let counts = summary(&self.world, execution).await?.changes.unwrap();
            ensure!(usize::try_from(counts.muted)? == expected.len(), "{counts:?}");
            let new = entries.iter().filter(|entry| {
                matches!(entry.change(), ResultChange::New | ResultChange::CauseChanged)
                    && !expected.contains(&entry.test_case_identifier.as_str())
            });
            let verdict = verdict(&self.world, execution).await?;
            let rule = verdict.rules.iter().find(|rule| rule.rule == "NewFailures").unwrap();
            ensure!(rule.is_met == (new.count() == 0), "{rule:?}");
        }
        ensure!(self.world.differences().await? == 0, "verify finds differences");
        ensure!(assay_execution::rebuild(&self.world.db).await? == 0, "rebuild changed something");
        Ok(())
    }
}

/// Returns the attempts of a variant as clients send them.
fn sent(((case, variant), attempts): (&(usize, usize), &Attempts)) -> Vec<Value> {
    let attempt = |(nr, cause): (usize, &Option<usize>)| {
        let result = if cause.is_some() { "Failed" } else { "Passed" };
        let mut sent = json!({
            "Identifier": CASES[*case], "Variant": format!("v{variant}"), "Attempt": nr + 1,
            "Result": result,
        });
        if let Some(cause) = cause {
            let step = json!({ "StepNr": 1, "Result": result, "ActualResult": CAUSES[*cause] });
            sent["Steps"] = json!([step]);
        }
        sent
    };
    attempts.iter().enumerate().map(attempt).collect()
}
