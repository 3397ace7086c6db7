//! Subjects: the software under test.

mod rules;
pub(crate) mod store;

use assay_auth::Caller;
use assay_events::publish;
use assay_proto::{
    Fault, ProjectId, SubjectId, Variable,
    catalog::{
        CreateSubjectRequest, DeleteSubjectRequest, GetSubjectRequest, ListSubjectsRequest,
        Subject, SubjectBatch, SubjectEntry, UpdateSubjectRequest, subject_service_server,
    },
};
use assay_records::{Action, Change};
use assay_runtime::{
    begin,
    list::{self, Batches},
};
use sqlx::PgPool;
use tonic::{Request, Response, Status};

use crate::{
    deletion, page, project,
    record::Record,
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
        let customer = Caller::of(&request)?.customer;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let db = self.db.clone();
        let archived = request.archived;
        list::answer(request.page, move |slice| {
            let db = db.clone();
            async move {
                let subjects = store::list(&db, customer, project, archived, &slice).await?;
                page::of_project(&db, customer, project, subjects).await
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
        let subject = store::get(&self.db, caller.customer, project, id).await?;
        let secrets = self.secrets_of(&caller, id);
        let subject = shown(subject, &secrets)?;
        secrets::tell(&self.db, &caller, secrets.seen(Record::Subject(project, id))).await?;
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
        let input = rules::valid(request.subject.unwrap_or_default())?;
        let base = rules::base(&input, id)?;
        let variables = self.secrets_of(&caller, id).store_all(&input.variables, &[])?;

        let mut tx = begin(&self.db).await?;
        project::store::hold(&mut tx, customer, project).await?;
        store::hold(&mut tx, customer, project, "BaseSubjectId", base).await?;
        let subject =
            store::insert(&mut tx, customer, project, id, &input, base, &variables).await?;
        publish(&mut tx, &Record::Subject(project, id).was(Action::Created, customer)?).await?;
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
        let mut current = store::lock(&mut tx, customer, project, id).await?;
        let stored = hide(&mut current);
        let input = rules::valid(change.of("subject", &current, &current.data_version)?)?;
        let base = rules::base(&input, id)?;
        if input.base_subject_id != current.base_subject_id {
            store::hold(&mut tx, customer, project, "BaseSubjectId", base).await?;
        }
        let variables = secrets.store_all(&input.variables, &stored)?;
        let subject = store::update(&mut tx, customer, id, &input, base, &variables).await?;
        let action = Action::of_change(current.archived, subject.archived);
        publish(&mut tx, &Record::Subject(project, id).was(action, customer)?).await?;
        let subject = shown(subject, &secrets)?;
        secrets::tell_with(&mut tx, &caller, secrets.seen(Record::Subject(project, id))).await?;
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
        project::store::claim(&mut tx, customer, project).await?;
        deletion::of_subject(&mut tx, customer, project, id).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(()))
    }
}

impl SubjectService {
    fn secrets_of(&self, caller: &Caller, id: SubjectId) -> RecordSecrets {
        self.secrets.of("subject", id, caller)
    }
}

/// A stored subject as the caller may see it.
fn shown(mut subject: Subject, secrets: &RecordSecrets) -> Result<Subject, Fault> {
    subject.variables = secrets.show_all(subject.variables)?;
    Ok(subject)
}

/// Masks the secrets of a stored subject and returns its variables as they are stored.
fn hide(subject: &mut Subject) -> Vec<Variable> {
    let hidden = masked(&subject.variables);
    std::mem::replace(&mut subject.variables, hidden)
}
