//! The records that engines need to run tests, with their secrets in clear, and the files to which they refer.
//! Archived records are included, deleted ones are not.

mod store;

use assay_auth::Caller;
use assay_proto::{
    CustomerId, EnvironmentId, Fault, FileId, ProjectId, SubjectId, TestCaseId, TestPlanId,
    catalog::{
        AutomatedTestPlan, AutomationRecordsBatch, DownloadAutomationFileRequest, Environment,
        FileContentsBatch, GetAutomationRecordsRequest, Subject, automation_service_server,
    },
};
use assay_rpc::list::Batches;
use assay_storage::Wanted;
use futures::{StreamExt, TryStreamExt, stream};
use sqlx::PgPool;
use tonic::{Request, Response, Status};
use uuid::Uuid;

use crate::{
    event::EventSource,
    file::Files,
    secrets::{self, Secrets},
};

/// Maximum number of records of a kind in a request.
const MOST_RECORDS: usize = 100;

/// Number of records that are read at once; each may be larger than a mebibyte.
const AT_ONCE: usize = 4;

#[derive(Clone)]
pub(crate) struct AutomationService {
    pub(crate) db: PgPool,
    pub(crate) secrets: Secrets,
    pub(crate) files: Files,
}

#[tonic::async_trait]
impl automation_service_server::AutomationService for AutomationService {
    type GetAutomationRecordsStream = Batches<AutomationRecordsBatch>;
    type DownloadAutomationFileStream = Batches<FileContentsBatch>;

    async fn get_automation_records(
        &self,
        request: Request<GetAutomationRecordsRequest>,
    ) -> Result<Response<Self::GetAutomationRecordsStream>, Status> {
        let caller = Caller::of(&request)?;
        let customer = caller.customer;
        let request = request.into_inner();
        let plans = parse_ids("TestPlanIds", &request.test_plan_ids, TestPlanId::from_field)?;
        let subjects = parse_ids("SubjectIds", &request.subject_ids, SubjectId::from_field)?;
        let environments =
            parse_ids("EnvironmentIds", &request.environment_ids, EnvironmentId::from_field)?;

        let plans = plans.chunks(AT_ONCE).map(|ids| Chunk::Plans(ids.to_vec()));
        let subjects = subjects.chunks(AT_ONCE).map(|ids| Chunk::Subjects(ids.to_vec()));
        let environments = environments.chunks(AT_ONCE);
        let environments = environments.map(|ids| Chunk::Environments(ids.to_vec()));
        let chunks: Vec<_> = plans.chain(subjects).chain(environments).collect();
        let this = self.clone();
        let parts = stream::iter(chunks).then(move |chunk| {
            let (this, caller) = (this.clone(), caller.clone());
            async move { this.records(&caller, customer, chunk).await.map_err(Status::from) }
        });
        Ok(Response::new(
            parts.map_ok(|records| stream::iter(records).map(Ok)).try_flatten().boxed(),
        ))
    }

    async fn download_automation_file(
        &self,
        request: Request<DownloadAutomationFileRequest>,
    ) -> Result<Response<Self::DownloadAutomationFileStream>, Status> {
        let customer = Caller::of(&request)?.customer;
        let DownloadAutomationFileRequest { record_ids, id, range, if_sha256, head_only } =
            request.into_inner();
        let records = parse_ids("RecordIds", &record_ids, parse_record_id)?;
        let id = FileId::from_path(&id)?;
        let wanted = Wanted { range, if_tag: if_sha256, head_only };
        let contents = self.files.contents_for(customer, &records, id, wanted).await?;
        Ok(Response::new(contents))
    }
}

/// The ids of records that are read at once.
enum Chunk {
    Plans(Vec<TestPlanId>),
    Subjects(Vec<SubjectId>),
    Environments(Vec<EnvironmentId>),
}

impl Chunk {
    fn ids(&self) -> Vec<Uuid> {
        match self {
            Self::Plans(ids) => ids.iter().map(|id| id.0).collect(),
            Self::Subjects(ids) => ids.iter().map(|id| id.0).collect(),
            Self::Environments(ids) => ids.iter().map(|id| id.0).collect(),
        }
    }
}

impl AutomationService {
    /// Reads some records, and puts each into a message of its own, since a message has a maximum size.
    async fn records(
        &self,
        caller: &Caller,
        customer: CustomerId,
        chunk: Chunk,
    ) -> Result<Vec<AutomationRecordsBatch>, Fault> {
        let empty = AutomationRecordsBatch::default;
        let mut seen = Vec::new();
        let files = store::files(&self.db, customer, &chunk.ids()).await?;
        let files = (!files.is_empty()).then(|| AutomationRecordsBatch { files, ..empty() });
        let mut records: Vec<_> = match chunk {
            Chunk::Plans(ids) => {
                let plans = self.plans(customer, &ids, &mut seen).await?.into_iter();
                let batch = |plan| AutomationRecordsBatch { test_plans: vec![plan], ..empty() };
                plans.map(batch).collect()
            }
            Chunk::Subjects(ids) => {
                let subjects = self.subjects(customer, &ids, &mut seen).await?.into_iter();
                let batch = |subject| AutomationRecordsBatch { subjects: vec![subject], ..empty() };
                subjects.map(batch).collect()
            }
            Chunk::Environments(ids) => {
                let environments = self.environments(customer, &ids, &mut seen).await?.into_iter();
                let batch = |environment| AutomationRecordsBatch {
                    environments: vec![environment],
                    ..empty()
                };
                environments.map(batch).collect()
            }
        };
        secrets::publish_seen(&self.db, caller, seen).await?;
        records.extend(files);
        Ok(records)
    }

    async fn plans(
        &self,
        customer: CustomerId,
        ids: &[TestPlanId],
        seen: &mut Vec<EventSource>,
    ) -> Result<Vec<AutomatedTestPlan>, Fault> {
        let mut plans = store::plans(&self.db, customer, ids).await?;
        for plan in &mut plans {
            let secrets = self.secrets.in_clear("test-plan", &plan.id);
            plan.variables = secrets.show_all(std::mem::take(&mut plan.variables))?;
            let case = TestCaseId::from_record(&plan.test_case_id)?;
            seen.extend(secrets.seen(EventSource::TestPlan(
                None,
                case,
                TestPlanId::from_record(&plan.id)?,
            )));
        }
        Ok(plans)
    }

    async fn subjects(
        &self,
        customer: CustomerId,
        ids: &[SubjectId],
        seen: &mut Vec<EventSource>,
    ) -> Result<Vec<Subject>, Fault> {
        let mut subjects = store::subjects(&self.db, customer, ids).await?;
        for subject in &mut subjects {
            let secrets = self.secrets.in_clear("subject", &subject.id);
            subject.variables = secrets.show_all(std::mem::take(&mut subject.variables))?;
            let project = ProjectId::from_record(&subject.project_id)?;
            seen.extend(
                secrets.seen(EventSource::Subject(project, SubjectId::from_record(&subject.id)?)),
            );
        }
        Ok(subjects)
    }

    async fn environments(
        &self,
        customer: CustomerId,
        ids: &[EnvironmentId],
        seen: &mut Vec<EventSource>,
    ) -> Result<Vec<Environment>, Fault> {
        let mut environments = store::environments(&self.db, customer, ids).await?;
        for environment in &mut environments {
            let secrets = self.secrets.in_clear("environment", &environment.id);
            environment.password = secrets.show("Password", &environment.password)?;
            let project = ProjectId::from_record(&environment.project_id)?;
            let id = EnvironmentId::from_record(&environment.id)?;
            seen.extend(secrets.seen(EventSource::Environment(project, id)));
        }
        Ok(environments)
    }
}

/// Parses the ids in a field of the request.
fn parse_ids<T>(
    field: &'static str,
    texts: &[String],
    parse: fn(&'static str, &str) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    if texts.len() > MOST_RECORDS {
        return Err(Fault::invalid(field, format!("must be at most {MOST_RECORDS}")));
    }
    texts.iter().map(|text| parse(field, text)).collect()
}

/// Parses the id of a record of any kind.
fn parse_record_id(field: &'static str, text: &str) -> Result<Uuid, Fault> {
    Uuid::try_parse(text).map_err(|_| Fault::invalid(field, "must be ids of records"))
}
