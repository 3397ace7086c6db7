//! What engines need to know, to run what was started: all of it in clear, and all of it even after
//! it was archived or deleted.

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
use futures::{StreamExt, stream};
use sqlx::PgPool;
use tonic::{Request, Response, Status};

use crate::{
    record::Record,
    secrets::{self, Secrets},
};

/// How many records of a kind one request may ask for: each may have a mebibyte.
const MOST_RECORDS: usize = 100;

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
        let plans = ids("TestPlanIds", &request.test_plan_ids, TestPlanId::parse)?;
        let subjects = ids("SubjectIds", &request.subject_ids, SubjectId::parse)?;
        let environments = ids("EnvironmentIds", &request.environment_ids, EnvironmentId::parse)?;

        let mut seen = Vec::new();
        let plans = self.plans(customer, &plans, &mut seen).await?;
        let subjects = self.subjects(customer, &subjects, &mut seen).await?;
        let environments = self.environments(customer, &environments, &mut seen).await?;
        secrets::tell(&self.db, &caller, seen).await?;
        Ok(answer(plans, subjects, environments))
    }
}

impl AutomationService {
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
            let case = TestCaseId::named(&plan.test_case_id)?;
            seen.extend(secrets.seen(Record::TestPlan(case, TestPlanId::named(&plan.id)?)));
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
            let project = ProjectId::named(&subject.project_id)?;
            seen.extend(secrets.seen(Record::Subject(project, SubjectId::named(&subject.id)?)));
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
            let project = ProjectId::named(&environment.project_id)?;
            let id = EnvironmentId::named(&environment.id)?;
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

/// One record a message, so that each fits into one.
fn answer(
    plans: Vec<AutomatedTestPlan>,
    subjects: Vec<Subject>,
    environments: Vec<Environment>,
) -> Response<Batches<AutomationRecordsBatch>> {
    let nothing = AutomationRecordsBatch::default;
    let plans = plans
        .into_iter()
        .map(move |plan| AutomationRecordsBatch { test_plans: vec![plan], ..nothing() });
    let subjects = subjects
        .into_iter()
        .map(move |subject| AutomationRecordsBatch { subjects: vec![subject], ..nothing() });
    let environments = environments.into_iter().map(move |environment| AutomationRecordsBatch {
        environments: vec![environment],
        ..nothing()
    });
    let parts = plans.chain(subjects).chain(environments).map(Ok);
    Response::new(stream::iter(parts).boxed())
}
