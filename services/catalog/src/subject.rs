//! Subjects, the software under test.

mod files;
mod rules;
pub(crate) mod store;

use assay_auth::Caller;
use assay_database::begin;
use assay_events::publish;
use assay_proto::{
    Fault, ProjectId, SubjectId, Variable,
    catalog::{
        CreateSubjectRequest, DeleteSubjectRequest, GetSubjectRequest, ListSubjectsRequest,
        Subject, SubjectBatch, SubjectEntry, UpdateSubjectRequest, subject_service_server,
    },
};
use assay_records::{Action, Change};
use assay_rpc::list::{self, Batches};
use sqlx::PgPool;
use tonic::{Request, Response, Status};

use self::rules::BASE_SUBJECT;
use crate::{
    deletion,
    event::EventSource,
    filter, project,
    records::Records,
    secrets::{self, RecordSecrets, Secrets, masked},
};

pub(crate) struct SubjectService {
    pub(crate) db: PgPool,
    pub(crate) secrets: Secrets,
}

#[tonic::async_trait]
impl subject_service_server::SubjectService for SubjectService {
    type ListSubjectsStream = Batches<SubjectBatch>;

    async fn list_subjects(
        &self,
        request: Request<ListSubjectsRequest>,
    ) -> Result<Response<Self::ListSubjectsStream>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let filter = filter::active_or_archived(request.archived);
        let (db, customer, user) = (self.db.clone(), caller.customer, caller.user);
        list::answer(request.page, move |slice| {
            let db = db.clone();
            async move {
                let records = Records::<Subject>::of(customer, project);
                records.list(&db, user, filter, &[], &slice).await
            }
        })
        .await
    }

    async fn get_subject(
        &self,
        request: Request<GetSubjectRequest>,
    ) -> Result<Response<Subject>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let id = SubjectId::from_path(&request.id)?;
        let subject = Records::<Subject>::of(caller.customer, project).get(&self.db, id).await?;
        let secrets = self.secrets_of(&caller, id);
        let subject = shown(subject, &secrets)?;
        secrets::publish_seen(&self.db, &caller, secrets.seen(EventSource::Subject(project, id)))
            .await?;
        Ok(Response::new(subject))
    }

    async fn create_subject(
        &self,
        request: Request<CreateSubjectRequest>,
    ) -> Result<Response<SubjectEntry>, Status> {
        let caller = Caller::of(&request)?;
        let customer = caller.customer;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let id = SubjectId::new();
        let input = rules::new(request.subject.unwrap_or_default());
        let mut input = rules::valid(input)?;
        let base = rules::base(&input, id)?;
        input.variables = self.secrets_of(&caller, id).store_all(input.variables, &[])?;

        let mut tx = begin(&self.db).await?;
        project::store::lock_shared(&mut tx, customer, project).await?;
        let subjects = Records::<Subject>::of(customer, project);
        subjects.lock_referenced(&mut tx, BASE_SUBJECT, base).await?;
        files::resolve(&mut tx, customer, project, id, &mut input, None).await?;
        let subject = store::insert(&mut tx, customer, project, id, &input).await?;
        publish(
            &mut tx,
            &EventSource::Subject(project, id).event(Action::Created, customer, Some("1"))?,
        )
        .await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(subject))
    }

    async fn update_subject(
        &self,
        request: Request<UpdateSubjectRequest>,
    ) -> Result<Response<Subject>, Status> {
        let caller = Caller::of(&request)?;
        let customer = caller.customer;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let id = SubjectId::from_path(&request.id)?;
        let UpdateSubjectRequest { data_version, changes, fields, .. } = request;
        let change = Change { data_version, changes, fields };
        let secrets = self.secrets_of(&caller, id);

        let mut tx = begin(&self.db).await?;
        let subjects = Records::<Subject>::of(customer, project);
        let mut current = subjects.lock(&mut tx, id).await?;
        let stored = hide(&mut current);
        let mut input = rules::valid(change.apply("subject", &current, &current.data_version)?)?;
        let base = rules::base(&input, id)?;
        if input.base_subject_id != current.base_subject_id {
            subjects.lock_referenced(&mut tx, BASE_SUBJECT, base).await?;
        }
        input.variables = secrets.store_all(input.variables, &stored)?;
        files::resolve(&mut tx, customer, project, id, &mut input, Some(&current)).await?;
        let subject = store::update(&mut tx, customer, project, id, &input).await?;
        let action = Action::of_change(current.archived, subject.archived);
        publish(
            &mut tx,
            &EventSource::Subject(project, id).event(
                action,
                customer,
                Some(&subject.data_version),
            )?,
        )
        .await?;
        let subject = shown(subject, &secrets)?;
        secrets::publish_seen_with(
            &mut tx,
            &caller,
            secrets.seen(EventSource::Subject(project, id)),
        )
        .await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(subject))
    }

    async fn delete_subject(
        &self,
        request: Request<DeleteSubjectRequest>,
    ) -> Result<Response<()>, Status> {
        let customer = Caller::of(&request)?.customer;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let id = SubjectId::from_path(&request.id)?;

        let mut tx = begin(&self.db).await?;
        project::store::lock_exclusive(&mut tx, customer, project).await?;
        deletion::delete_subject(&mut tx, customer, project, id).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(()))
    }
}

impl SubjectService {
    fn secrets_of(&self, caller: &Caller, id: SubjectId) -> RecordSecrets {
        self.secrets.of("subject", id, caller)
    }
}

/// Returns a stored subject as the caller may see it.
fn shown(mut subject: Subject, secrets: &RecordSecrets) -> Result<Subject, Fault> {
    subject.variables = secrets.show_all(subject.variables)?;
    Ok(subject)
}

/// Masks the secrets of a stored subject and returns its variables as they are stored.
fn hide(subject: &mut Subject) -> Vec<Variable> {
    let hidden = masked(&subject.variables);
    std::mem::replace(&mut subject.variables, hidden)
}
