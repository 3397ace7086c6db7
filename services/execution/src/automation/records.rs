//! The plans, subjects and environments of leases, and the files to which they refer. They are read from the
//! catalog when work is leased, because they are secret or large. Names remain those of when the execution
//! started.

use std::collections::{BTreeMap, HashMap, HashSet};

use assay_auth::Caller;
use assay_proto::{
    Fault,
    catalog::{
        AutomatedTestPlan, AutomationFile, AutomationRecordsBatch, Environment,
        GetAutomationRecordsRequest, Subject,
    },
    execution::{Lease, LeasedFile},
};
use tonic::Status;

use crate::{catalog::Catalog, pool};

/// The records of the catalog that some leases need, by id.
#[derive(Default)]
pub(crate) struct AutomationRecords {
    plans: HashMap<String, AutomatedTestPlan>,
    subjects: HashMap<String, Subject>,
    environments: HashMap<String, Environment>,
    /// Files by the id of the record that refers to them.
    files: HashMap<String, Vec<AutomationFile>>,
    values: pool::TakenValues,
}

impl AutomationRecords {
    /// Reads the records of leases with one call to the catalog. Fails unless all of them exist.
    pub(crate) async fn read(
        catalog: &Catalog,
        caller: &Caller,
        leases: &[Lease],
    ) -> Result<Self, Status> {
        let request = GetAutomationRecordsRequest {
            test_plan_ids: distinct(leases, plan_id),
            subject_ids: distinct(leases, subject_id),
            environment_ids: distinct(leases, environment_id),
        };
        let mut records = Self::default();
        for part in catalog.automation_records(caller, request).await? {
            records.add(part);
        }
        if leases.iter().all(|lease| records.has_all(lease)) {
            return Ok(records);
        }
        Err(Fault::NotFound("plan, subject or environment").into())
    }

    /// Whether a variable takes its value from a pool.
    pub(crate) fn name_pools(&self) -> bool {
        let of_plans = self.plans.values().flat_map(|plan| &plan.variables);
        let of_subjects = self.subjects.values().flat_map(|subject| &subject.variables);
        of_plans.chain(of_subjects).any(|variable| !variable.pool_name.is_empty())
    }

    /// Adds the values of pools that leases have taken.
    pub(crate) fn with_values(self, values: pool::TakenValues) -> Self {
        Self { values, ..self }
    }

    /// Adds the records of other leases.
    pub(crate) fn extend(&mut self, other: Self) {
        self.plans.extend(other.plans);
        self.subjects.extend(other.subjects);
        self.environments.extend(other.environments);
        self.files.extend(other.files);
    }

    /// Returns a lease with its records.
    pub(crate) fn complete(&self, lease: Lease) -> Lease {
        let files = self.files_of(&lease);
        let mut test_plan = plan_id(&lease).and_then(|id| self.plans.get(id)).cloned();
        let mut subject = lease.subject.and_then(|Subject { id, identifier, name, .. }| {
            Some(Subject { identifier, name, ..self.subjects.get(&id)?.clone() })
        });
        let of_plan = test_plan.iter_mut().flat_map(|plan| &mut plan.variables);
        let of_subject = subject.iter_mut().flat_map(|subject| &mut subject.variables);
        for variable in of_plan.chain(of_subject) {
            self.values.fill(&lease.id, variable);
        }
        let environment = lease.environment.and_then(|Environment { id, name, .. }| {
            Some(Environment { name, ..self.environments.get(&id)?.clone() })
        });
        Lease { test_plan, subject, environment, files, ..lease }
    }

    /// Returns the files to which the records of a lease refer, each once.
    fn files_of(&self, lease: &Lease) -> Vec<LeasedFile> {
        let records = record_ids(lease).filter_map(|record| self.files.get(record)).flatten();
        let files: BTreeMap<_, _> = records.map(|file| (&file.id, file)).collect();
        let leased = |AutomationFile { id, name, size, sha256, .. }: &AutomationFile| LeasedFile {
            id: id.clone(),
            name: name.clone(),
            size: *size,
            sha256: sha256.clone(),
            url: format!("/api/automation/leases/{}/files/{id}", lease.id),
        };
        files.into_values().map(leased).collect()
    }

    fn has_all(&self, lease: &Lease) -> bool {
        plan_id(lease).is_none_or(|id| self.plans.contains_key(id))
            && subject_id(lease).is_none_or(|id| self.subjects.contains_key(id))
            && environment_id(lease).is_none_or(|id| self.environments.contains_key(id))
    }

    fn add(&mut self, part: AutomationRecordsBatch) {
        self.plans.extend(part.test_plans.into_iter().map(|plan| (plan.id.clone(), plan)));
        self.subjects.extend(part.subjects.into_iter().map(|s| (s.id.clone(), s)));
        self.environments.extend(part.environments.into_iter().map(|e| (e.id.clone(), e)));
        for file in part.files {
            self.files.entry(file.record_id.clone()).or_default().push(file);
        }
    }
}

/// Returns the distinct ids that leases refer to.
fn distinct(leases: &[Lease], id: fn(&Lease) -> Option<&String>) -> Vec<String> {
    let ids: HashSet<_> = leases.iter().filter_map(id).collect();
    ids.into_iter().cloned().collect()
}

/// Returns the ids of the records of a lease.
fn record_ids(lease: &Lease) -> impl Iterator<Item = &String> {
    [plan_id(lease), subject_id(lease), environment_id(lease)].into_iter().flatten()
}

fn plan_id(lease: &Lease) -> Option<&String> {
    lease.test_plan.as_ref().map(|plan| &plan.id)
}

fn subject_id(lease: &Lease) -> Option<&String> {
    lease.subject.as_ref().map(|subject| &subject.id)
}

fn environment_id(lease: &Lease) -> Option<&String> {
    lease.environment.as_ref().map(|environment| &environment.id)
}
