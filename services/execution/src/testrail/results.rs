//! Results of a run, which become attempts at instances of its execution.

use std::collections::{HashMap, HashSet};

use assay_auth::Caller;
use assay_database::begin;
use assay_ledger::test_report;
use assay_proto::{
    ExecutionId, Fault, ProjectId,
    execution::{AddedRunResult, AddedRunResults},
};
use assay_rpc::body::Memory;
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
        let identifiers = self.identifiers(caller, run, &sent).await?;
        let outcomes: Vec<(i64, i64)> =
            sent.iter().map(|result| (result.test_case, result.status)).collect();
        let tests = {
            let identifiers = identifiers.clone();
            spawn_blocking(move || file::of_tests(body::tests(sent, &identifiers).into_iter()))
        };
        let Report { results, .. } = tests.await.map_err(Fault::internal)??;

        let mut added = Added { results, ..Added::default() };
        let more =
            self.results.prepare(caller, project, execution, &mut added, &mut memory).await?;
        let writer = self.results.limits.write(customer, execution.0).await?;
        let mut tx = begin(&self.db).await?;
        attempts::lock_execution(&mut tx, customer, execution).await?;
        let named = outcomes.iter().filter_map(|(case, _)| identifiers.get(case));
        let named: Vec<&str> = named.map(String::as_str).collect();
        let identity = repetition::identity(&mut tx, customer, execution, &digest, &named).await?;
        let keys = repetition::keys(&identity, outcomes.len());
        added.digest = Some(identity);
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

/// Returns which attempt each result is: the last one of a test case is its last attempt.
fn attempts(
    outcomes: &[(i64, i64)],
    identifiers: &HashMap<i64, String>,
    last: &HashMap<String, AttemptOf>,
) -> Result<Vec<String>, Fault> {
    let mut later = HashMap::<i64, i32>::new();
    let attempts = outcomes.iter().rev().map(|(case, _)| {
        let last = identifiers.get(case).and_then(|identifier| last.get(identifier));
        let last = last.ok_or_else(|| Fault::internal("a result has no instance"))?;
        let later = later.entry(*case).or_default();
        let attempt = (last.attempt - *later).max(1);
        *later += 1;
        serde_json::to_string(&AttemptOf { attempt, ..*last }).map_err(Fault::internal)
    });
    let mut attempts: Vec<String> = attempts.collect::<Result<_, _>>()?;
    attempts.reverse();
    Ok(attempts)
}
