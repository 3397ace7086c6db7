//! Leases as engines get them: with the plans, subjects and environments that the catalog keeps,
//! and that are not copied at the start because they are secret or large. Names are as they were.

use std::collections::{HashMap, HashSet};

use assay_auth::Caller;
use assay_proto::{
    ExecutionId, Fault,
    catalog::{
        AutomatedTestPlan, AutomationRecordsBatch, Environment, GetAutomationRecordsRequest,
        Subject,
    },
    execution::{Lease, LeaseBatch, LeasedTestCase},
};
use assay_runtime::list::Batches;
use futures::{StreamExt, stream};
use tonic::{Response, Status};

use super::{
    store::Assignment,
    take::{Haul, Leased},
};
use crate::catalog::Catalog;

/// What the catalog knows of the work of some leases.
#[derive(Default)]
pub(crate) struct Records {
    plans: HashMap<String, AutomatedTestPlan>,
    subjects: HashMap<String, Subject>,
    environments: HashMap<String, Environment>,
}

impl Records {
    /// Asks the catalog once, for all these leases.
    pub(crate) async fn read(
        catalog: &Catalog,
        caller: &Caller,
        leases: &[Leased],
        assignments: &HashMap<ExecutionId, Assignment>,
    ) -> Result<Self, Status> {
        let plans: HashSet<_> = leases.iter().map(|lease| lease.work.test_plan_id).collect();
        let of = |id: fn(&Assignment) -> Option<String>| {
            let of = leases.iter().map(|lease| assignments.get(&lease.schedule.execution_id));
            let ids: HashSet<String> = of.flatten().filter_map(id).collect();
            ids.into_iter().collect::<Vec<_>>()
        };
        let request = GetAutomationRecordsRequest {
            test_plan_ids: plans.iter().map(ToString::to_string).collect(),
            subject_ids: of(|of| of.software_version_id.map(|id| id.to_string())),
            environment_ids: of(|of| of.environment_id.map(|id| id.to_string())),
        };
        let mut records = Self::default();
        for part in catalog.automation_records(caller, request).await? {
            records.add(part);
        }
        if leases.iter().all(|lease| records.has_all(lease, assignments)) {
            return Ok(records);
        }
        // Of what was deleted meanwhile engines get nothing, least of all its secrets.
        Err(Fault::NotFound("plan, subject or environment").into())
    }

    fn has_all(&self, lease: &Leased, assignments: &HashMap<ExecutionId, Assignment>) -> bool {
        let of = assignments.get(&lease.schedule.execution_id);
        let subject = of.and_then(|of| of.software_version_id);
        let environment = of.and_then(|of| of.environment_id);
        self.plans.contains_key(&lease.work.test_plan_id.to_string())
            && subject.is_none_or(|id| self.subjects.contains_key(&id.to_string()))
            && environment.is_none_or(|id| self.environments.contains_key(&id.to_string()))
    }

    /// Adds what is known of further leases.
    pub(crate) fn extend(&mut self, other: Self) {
        self.plans.extend(other.plans);
        self.subjects.extend(other.subjects);
        self.environments.extend(other.environments);
    }

    fn add(&mut self, part: AutomationRecordsBatch) {
        self.plans.extend(part.test_plans.into_iter().map(|plan| (plan.id.clone(), plan)));
        self.subjects.extend(part.subjects.into_iter().map(|s| (s.id.clone(), s)));
        self.environments.extend(part.environments.into_iter().map(|e| (e.id.clone(), e)));
    }

    fn subject(&self, of: &Assignment) -> Option<Subject> {
        let subject = self.subjects.get(&of.software_version_id?.to_string())?.clone();
        Some(Subject {
            identifier: of.software_version.clone().unwrap_or_default(),
            name: of.software_name.clone().unwrap_or_default(),
            ..subject
        })
    }

    fn environment(&self, of: &Assignment) -> Option<Environment> {
        let environment = self.environments.get(&of.environment_id?.to_string())?.clone();
        Some(Environment { name: of.environment_name.clone().unwrap_or_default(), ..environment })
    }

    fn lease(&self, lease: Leased, of: Option<&Assignment>) -> Lease {
        let Leased { id, expires_at, schedule, work } = lease;
        let test_plan_id = work.test_plan_id.to_string();
        Lease {
            id: id.to_string(),
            expires_at: Some(expires_at),
            schedule_id: schedule.id.to_string(),
            execution_id: schedule.execution_id.to_string(),
            project_id: schedule.project_id.to_string(),
            test_report_id: work.id.to_string(),
            test_type: work.test_type,
            minimum_duration_in_min: work.minimum_duration_in_min,
            instance_numbers: work.missing,
            test_case: Some(LeasedTestCase {
                id: work.test_case_id.to_string(),
                identifier: work.test_case_identifier,
                name: work.test_case_name,
            }),
            test_plan: self.plans.get(&test_plan_id).cloned(),
            subject: of.and_then(|of| self.subject(of)),
            environment: of.and_then(|of| self.environment(of)),
        }
    }
}

/// Answers one lease a message, made when it is sent: they may be large, all together.
pub(crate) fn answer(haul: Haul, records: Records) -> Response<Batches<LeaseBatch>> {
    let Haul { leases, assignments } = haul;
    let leases = leases.into_iter().map(move |lease| {
        let of = assignments.get(&lease.schedule.execution_id);
        Ok(LeaseBatch { items: vec![records.lease(lease, of)], next_cursor: None })
    });
    Response::new(stream::iter(leases).boxed())
}
