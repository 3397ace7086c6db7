//! The records that engines need to run tests: in clear, also those that were archived since,
//! but nothing of what was deleted.

mod store;

use assay_auth::Caller;
use assay_proto::{
    CustomerId, EnvironmentId, Fault, ProjectId, SubjectId, TestCaseId, TestPlanId,
    catalog::{
        AutomatedTestPlan, AutomationRecordsBatch, Environment, GetAutomationRecordsRequest,
        Subject, automation_service_server,
    },
};
use assay_runtime::list::Batches;
use futures::{StreamExt, TryStreamExt, stream};
use sqlx::PgPool;
use tonic::{Request, Response, Status};

use crate::{
    record::Record,
    secrets::{self, Secrets},
};

/// How many records of a kind one request may ask for.
const MOST_RECORDS: usize = 100;

/// How many records are read at once: each may weigh more than a mebibyte.
const AT_ONCE: usize = 4;

#[derive(Clone)]
pub(crate) struct AutomationService {
    pub(crate) db: PgPool,
    pub(crate) secrets: Secrets,
}

#[tonic::async_trait]
impl automation_service_server::AutomationService for AutomationService {
    type GetAutomationRecordsStream = Batches<AutomationRecordsBatch>;

    async fn get_automation_records(
        &self,
        request: Request<GetAutomationRecordsRequest>,
    ) -> Result<Response<Self::GetAutomationRecordsStream>, Status> {
        let caller = Caller::of(&request)?;
        let customer = caller.customer;
        let request = request.into_inner();
        let plans = ids("TestPlanIds", &request.test_plan_ids, TestPlanId::from_field)?;
        let subjects = ids("SubjectIds", &request.subject_ids, SubjectId::from_field)?;
        let environments =
            ids("EnvironmentIds", &request.environment_ids, EnvironmentId::from_field)?;

        let plans = plans.chunks(AT_ONCE).map(|ids| Asked::Plans(ids.to_vec()));
        let subjects = subjects.chunks(AT_ONCE).map(|ids| Asked::Subjects(ids.to_vec()));
        let environments = environments.chunks(AT_ONCE);
        let environments = environments.map(|ids| Asked::Environments(ids.to_vec()));
        let asked: Vec<_> = plans.chain(subjects).chain(environments).collect();
        let this = self.clone();
        let parts = stream::iter(asked).then(move |asked| {
            let (this, caller) = (this.clone(), caller.clone());
            async move { this.records(&caller, customer, asked).await.map_err(Status::from) }
        });
        Ok(Response::new(
            parts.map_ok(|records| stream::iter(records).map(Ok)).try_flatten().boxed(),
        ))
    }
}

/// Records that are read at once.
enum Asked {
    Plans(Vec<TestPlanId>),
    Subjects(Vec<SubjectId>),
    Environments(Vec<EnvironmentId>),
}

impl AutomationService {
    /// Some records, one a message, so that each fits into one.
    async fn records(
        &self,
        caller: &Caller,
        customer: CustomerId,
        asked: Asked,
    ) -> Result<Vec<AutomationRecordsBatch>, Fault> {
        let nothing = AutomationRecordsBatch::default;
        let mut seen = Vec::new();
        let records = match asked {
            Asked::Plans(ids) => {
                let plans = self.plans(customer, &ids, &mut seen).await?.into_iter();
                let batch = |plan| AutomationRecordsBatch { test_plans: vec![plan], ..nothing() };
                plans.map(batch).collect()
            }
            Asked::Subjects(ids) => {
                let subjects = self.subjects(customer, &ids, &mut seen).await?.into_iter();
                let batch =
                    |subject| AutomationRecordsBatch { subjects: vec![subject], ..nothing() };
                subjects.map(batch).collect()
            }
            Asked::Environments(ids) => {
                let environments = self.environments(customer, &ids, &mut seen).await?.into_iter();
                let batch = |environment| AutomationRecordsBatch {
                    environments: vec![environment],
                    ..nothing()
                };
                environments.map(batch).collect()
            }
        };
        secrets::tell(&self.db, caller, seen).await?;
        Ok(records)
    }

    async fn plans(
        &self,
        customer: CustomerId,
        ids: &[TestPlanId],
        seen: &mut Vec<Record>,
    ) -> Result<Vec<AutomatedTestPlan>, Fault> {
        let mut plans = store::plans(&self.db, customer, ids).await?;
        for plan in &mut plans {
            let secrets = self.secrets.in_clear("test-plan", &plan.id);
            plan.variables = secrets.show_all(std::mem::take(&mut plan.variables))?;
            let case = TestCaseId::from_path(&plan.test_case_id)?;
            seen.extend(secrets.seen(Record::TestPlan(case, TestPlanId::from_path(&plan.id)?)));
        }
        Ok(plans)
    }

    async fn subjects(
        &self,
        customer: CustomerId,
        ids: &[SubjectId],
        seen: &mut Vec<Record>,
    ) -> Result<Vec<Subject>, Fault> {
        let mut subjects = store::subjects(&self.db, customer, ids).await?;
        for subject in &mut subjects {
            let secrets = self.secrets.in_clear("subject", &subject.id);
            subject.variables = secrets.show_all(std::mem::take(&mut subject.variables))?;
            let project = ProjectId::from_path(&subject.project_id)?;
            seen.extend(secrets.seen(Record::Subject(project, SubjectId::from_path(&subject.id)?)));
        }
        Ok(subjects)
    }

    async fn environments(
        &self,
        customer: CustomerId,
        ids: &[EnvironmentId],
        seen: &mut Vec<Record>,
    ) -> Result<Vec<Environment>, Fault> {
        let mut environments = store::environments(&self.db, customer, ids).await?;
        for environment in &mut environments {
            let secrets = self.secrets.in_clear("environment", &environment.id);
            environment.password = secrets.show("Password", &environment.password)?;
            let project = ProjectId::from_path(&environment.project_id)?;
            let id = EnvironmentId::from_path(&environment.id)?;
            seen.extend(secrets.seen(Record::Environment(project, id)));
        }
        Ok(environments)
    }
}

fn ids<T>(
    field: &'static str,
    texts: &[String],
    parse: fn(&'static str, &str) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    if texts.len() > MOST_RECORDS {
        return Err(Fault::invalid(field, format!("must be at most {MOST_RECORDS}")));
    }
    texts.iter().map(|text| parse(field, text)).collect()
}
