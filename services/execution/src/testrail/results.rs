//! Results of a run, which become attempts at instances of its execution.

use std::collections::{HashMap, HashSet};

use assay_auth::Caller;
use assay_database::begin;
use assay_ledger::test_report;
use assay_proto::{
    CustomerId, ExecutionId, Fault, ProjectId,
    catalog::{Snapshot, SnapshotTestCase},
    execution::{AddedRunResult, AddedRunResults},
};
use assay_rpc::body::Memory;
use sqlx::PgTransaction;
use tokio::task::spawn_blocking;
use tonic::Status;

use super::{
    RunService, attempts,
    body::{self, AttemptOf, Results, Selection, Sent},
    number::{Kind, Numbered},
    repetition,
    store::{self, Record},
};
use crate::result::{
    self, Added,
    file::{self, Report},
    rules::{Case, Reported},
};

impl RunService {
    /// Adds results, all or none. They are stored with their numbers.
    pub(super) async fn add(
        &self,
        caller: &Caller,
        run: &Numbered,
        results: Results,
        mut memory: Memory,
    ) -> Result<AddedRunResults, Status> {
        let (customer, execution) = (caller.customer, ExecutionId(run.scope_id));
        let project = ProjectId::from_record(&run.key)?;
        let Results { sent, digest } = results;
        let mut identifiers = self.identifiers(caller, run, &sent).await?;
        let outcomes: Vec<(i64, i64)> =
            sent.iter().map(|result| (result.test_case, result.status)).collect();
        let tests = {
            let identifiers = identifiers.clone();
            spawn_blocking(move || file::of_tests(body::tests(sent, &identifiers).into_iter()))
        };
        let Report { results, .. } = tests.await.map_err(Fault::internal)??;

        let mut added = Added { results, ..Added::default() };
        let (mut adopted, staged) =
            self.results.prepare(caller, project, execution, &mut added, &mut memory).await?;
        let writer = self.results.limits.write(customer, execution.0).await?;
        let mut tx = begin(&self.db).await?;
        attempts::lock_execution(&mut tx, customer, execution).await?;
        if let Some(snapshot) = &mut adopted {
            let aliases = aliases(&mut tx, customer, execution, snapshot).await?;
            resolve(&aliases, snapshot, &mut added.results, &mut identifiers);
        }
        let named = outcomes.iter().filter_map(|(case, _)| identifiers.get(case));
        let named: Vec<&str> = named.map(String::as_str).collect();
        let identity = repetition::identity(&mut tx, customer, execution, &digest, &named).await?;
        let keys = repetition::keys(&identity, outcomes.len());
        added.digest = Some(identity);
        let more = (adopted, staged);
        result::report(&mut tx, customer, project, execution, added, more).await?;
        attempts::shorten_grace(&mut tx, customer, execution).await?;
        let cases: Vec<&str> = identifiers.values().map(String::as_str).collect();
        let last = attempts::last_attempts(&mut tx, customer, execution, &cases).await?;
        let attempts = attempts(&outcomes, &identifiers, &last)?;
        let records: Vec<Record> = keys
            .into_iter()
            .zip(attempts)
            .map(|(key, details)| Record { scope: execution.0, key, details })
            .collect();
        let numbered = store::assign(&mut tx, customer, Kind::Result, &records, false).await?;
        tx.commit().await.map_err(Fault::from)?;
        drop((writer, memory));
        let added = numbered.iter().zip(outcomes).map(|(numbered, (test_case, status))| {
            AddedRunResult { number: numbered.number, test_case, status }
        });
        Ok(AddedRunResults { results: added.collect() })
    }

    /// Returns the identifiers of the test cases that results are for. Fails unless all of them are
    /// part of the run.
    async fn identifiers(
        &self,
        caller: &Caller,
        run: &Numbered,
        sent: &[Sent],
    ) -> Result<HashMap<i64, String>, Status> {
        let project = ProjectId::from_record(&run.key)?;
        let limits = &self.results.limits;
        let excludes = Selection::of(&run.details)?.excludes();
        let numbers: HashSet<i64> = sent.iter().map(|result| result.test_case).collect();
        let numbers: Vec<i64> = numbers.into_iter().filter(|number| !excludes(*number)).collect();
        let found = store::identifiers(&self.db, caller.customer, project, &numbers);
        let mut identifiers = limits.read(caller.customer, found).await?;
        let missing = self.missing(caller, run, &identifiers).await?;
        identifiers.retain(|_, identifier| !missing.contains(identifier));
        match sent.iter().position(|result| !identifiers.contains_key(&result.test_case)) {
            None => Ok(identifiers),
            Some(index) => {
                let problem = format!("C{} is not a test case of the run", sent[index].test_case);
                Err(Fault::invalid(format!("results/{index}/case_id"), problem).into())
            }
        }
    }

    /// Returns the identifiers that no test case of the project has.
    async fn missing(
        &self,
        caller: &Caller,
        run: &Numbered,
        identifiers: &HashMap<i64, String>,
    ) -> Result<HashSet<String>, Status> {
        let execution = ExecutionId(run.scope_id);
        let all: Vec<&str> = identifiers.values().map(String::as_str).collect();
        let known = test_report::store::known(&self.db, caller.customer, execution, &all);
        let known = self.results.limits.read(caller.customer, known).await?;
        let unknown = identifiers.values().filter(|one| !known.contains(*one)).cloned();
        let mut unknown: HashSet<String> = unknown.collect();
        if !unknown.is_empty() {
            let sought = unknown.iter().cloned().collect();
            let found = self.results.catalog.find_identifiers(caller, run.key.clone(), sought);
            found.await?.iter().for_each(|found| _ = unknown.remove(found));
        }
        Ok(unknown)
    }
}

/// Returns other identifiers of adopted test cases, each with the one of their report in a locked execution,
/// which they may not have yet: the first one then.
async fn aliases(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    execution: ExecutionId,
    adopted: &Snapshot,
) -> Result<HashMap<String, String>, Fault> {
    let ids: Vec<&str> = adopted.test_cases.iter().map(|case| case.id.as_str()).collect();
    let mut of_reports = test_report::store::identifiers(tx, customer, execution, &ids).await?;
    let mut aliases = HashMap::new();
    for SnapshotTestCase { id, identifier, .. } in &adopted.test_cases {
        let first = of_reports.entry(id.clone()).or_insert_with(|| identifier.clone());
        if *first != *identifier {
            aliases.insert(identifier.clone(), first.clone());
        }
    }
    Ok(aliases)
}

/// Replaces other identifiers of test cases. Results of one test case are attempts at the same instance,
/// whichever of its numbers they have.
fn resolve(
    aliases: &HashMap<String, String>,
    adopted: &mut Snapshot,
    results: &mut [Reported],
    identifiers: &mut HashMap<i64, String>,
) {
    if aliases.is_empty() {
        return;
    }
    adopted.test_cases.retain(|case| !aliases.contains_key(&case.identifier));
    for identifier in identifiers.values_mut() {
        if let Some(first) = aliases.get(identifier.as_str()) {
            first.clone_into(identifier);
        }
    }
    let mut attempts = HashMap::<String, i32>::new();
    for Reported { case, attempt, .. } in results {
        let Some(Case::Identifier(identifier)) = case else { continue };
        if let Some(first) = aliases.get(identifier.as_str()) {
            first.clone_into(identifier);
        }
        let attempts = attempts.entry(identifier.clone()).or_default();
        *attempts += 1;
        attempt.number = *attempts;
    }
}

/// Returns which attempt each result is: the last one of a test case is its last attempt.
fn attempts(
    outcomes: &[(i64, i64)],
    identifiers: &HashMap<i64, String>,
    last: &HashMap<String, AttemptOf>,
) -> Result<Vec<String>, Fault> {
    let mut later = HashMap::<&str, i32>::new();
    let attempts = outcomes.iter().rev().map(|(case, _)| {
        let identifier = identifiers.get(case).map(String::as_str).unwrap_or_default();
        let last = last.get(identifier);
        let last = last.ok_or_else(|| Fault::internal("a result has no instance"))?;
        let later = later.entry(identifier).or_default();
        let attempt = (last.attempt - *later).max(1);
        *later += 1;
        serde_json::to_string(&AttemptOf { attempt, ..*last }).map_err(Fault::internal)
    });
    let mut attempts: Vec<String> = attempts.collect::<Result<_, _>>()?;
    attempts.reverse();
    Ok(attempts)
}
