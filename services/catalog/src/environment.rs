//! Environments: where the software is tested.

mod rules;
pub(crate) mod store;

use std::fmt::Display;

use assay_auth::Caller;
use assay_events::publish;
use assay_proto::{
    EnvironmentId, Fault, ProjectId,
    catalog::{
        CreateEnvironmentRequest, DeleteEnvironmentRequest, Environment, EnvironmentBatch,
        EnvironmentEntry, GetEnvironmentRequest, ListEnvironmentsRequest, UpdateEnvironmentRequest,
        environment_service_server,
    },
};
use assay_records::{Action, Change};
use assay_runtime::{
    begin,
    list::{self, Batches, Rows, Slice},
};
use sqlx::PgPool;
use tonic::{Request, Response, Status};

use crate::{
    deletion, page, project,
    record::Record,
    secrets::{self, MASK, RecordSecrets, Secrets},
    subject,
};

/// The one field of an environment that is a secret.
const PASSWORD: &str = "Password";

#[derive(Clone)]
pub(crate) struct EnvironmentService {
    pub(crate) db: PgPool,
    pub(crate) secrets: Secrets,
}

#[tonic::async_trait]
impl environment_service_server::EnvironmentService for EnvironmentService {
    type ListEnvironmentsStream = Batches<EnvironmentBatch>;

    async fn list_environments(
        &self,
        request: Request<ListEnvironmentsRequest>,
    ) -> Result<Response<Self::ListEnvironmentsStream>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let this = self.clone();
        let archived = request.archived;
        list::answer(request.page, move |slice| {
            let (this, caller) = (this.clone(), caller.clone());
            async move { this.list(&caller, project, archived, &slice).await }
        })
        .await
    }

    async fn get_environment(
        &self,
        request: Request<GetEnvironmentRequest>,
    ) -> Result<Response<Environment>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let id = EnvironmentId::from_path(&request.id)?;
        let mut environment = store::get(&self.db, caller.customer, project, id).await?;
        let secrets = self.secrets_of(&caller, id);
        environment.password = secrets.show(PASSWORD, &environment.password)?;
        let seen = secrets.seen(Record::Environment(project, id));
        secrets::tell(&self.db, &caller, seen).await?;
        Ok(Response::new(environment))
    }

    async fn create_environment(
        &self,
        request: Request<CreateEnvironmentRequest>,
    ) -> Result<Response<EnvironmentEntry>, Status> {
        let caller = Caller::of(&request)?;
        let customer = caller.customer;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let id = EnvironmentId::new();
        let secrets = self.secrets_of(&caller, id);
        let input = rules::new(project, request.environment.unwrap_or_default());
        let mut input = rules::valid(input)?;
        let subject = rules::contained_subject(&input)?;
        input.password = secrets.store(PASSWORD, &input.password, None)?;

        let mut tx = begin(&self.db).await?;
        project::store::hold(&mut tx, customer, project).await?;
        subject::store::hold(&mut tx, customer, project, "ContainedSubject", subject).await?;
        let mut environment =
            store::insert(&mut tx, customer, project, id, &input, subject).await?;
        publish(&mut tx, &Record::Environment(project, id).was(Action::Created, customer)?).await?;
        environment.password = secrets.show(PASSWORD, &environment.password)?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(environment))
    }

    async fn update_environment(
        &self,
        request: Request<UpdateEnvironmentRequest>,
    ) -> Result<Response<Environment>, Status> {
        let caller = Caller::of(&request)?;
        let customer = caller.customer;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let id = EnvironmentId::from_path(&request.id)?;
        let UpdateEnvironmentRequest { data_version, changes, fields, .. } = request;
        let change = Change { data_version, changes, fields };
        let secrets = self.secrets_of(&caller, id);

        let mut tx = begin(&self.db).await?;
        let mut current = store::lock(&mut tx, customer, project, id).await?;
        let stored = std::mem::replace(&mut current.password, MASK.to_owned());
        let mut input = rules::valid(change.of("environment", &current, &current.data_version)?)?;
        let subject = rules::contained_subject(&input)?;
        if input.contained_subject != current.contained_subject {
            subject::store::hold(&mut tx, customer, project, "ContainedSubject", subject).await?;
        }
        input.password = secrets.store(PASSWORD, &input.password, Some(&stored))?;
        let mut environment = store::update(&mut tx, customer, id, &input, subject).await?;
        let action = Action::of_change(current.archived, environment.archived);
        publish(&mut tx, &Record::Environment(project, id).was(action, customer)?).await?;
        environment.password = secrets.show(PASSWORD, &environment.password)?;
        let seen = secrets.seen(Record::Environment(project, id));
        secrets::tell_with(&mut tx, &caller, seen).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(environment))
    }

    async fn delete_environment(
        &self,
        request: Request<DeleteEnvironmentRequest>,
    ) -> Result<Response<()>, Status> {
        let customer = Caller::of(&request)?.customer;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let id = EnvironmentId::from_path(&request.id)?;

        let mut tx = begin(&self.db).await?;
        project::store::claim(&mut tx, customer, project).await?;
        deletion::of_environment(&mut tx, customer, project, id).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(()))
    }
}

impl EnvironmentService {
    fn secrets_of(&self, caller: &Caller, id: impl Display) -> RecordSecrets {
        self.secrets.of("environment", id, caller)
    }

    /// A slice of a project's environments, with the passwords as the caller may see them.
    async fn list(
        &self,
        caller: &Caller,
        project: ProjectId,
        archived: bool,
        slice: &Slice,
    ) -> Result<Rows<EnvironmentEntry>, Fault> {
        let customer = caller.customer;
        let mut environments = store::list(&self.db, customer, project, archived, slice).await?;
        let mut seen = Vec::new();
        for environment in &mut environments.items {
            let id = EnvironmentId::from_path(&environment.id)?;
            let secrets = self.secrets_of(caller, id);
            environment.password = secrets.show(PASSWORD, &environment.password)?;
            seen.extend(secrets.seen(Record::Environment(project, id)));
        }
        secrets::tell(&self.db, caller, seen).await?;
        page::of_project(&self.db, customer, project, environments).await
    }
}
