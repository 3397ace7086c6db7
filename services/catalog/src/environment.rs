//! Environments, in which the software is tested.

mod files;
mod rules;
pub(crate) mod store;

use std::fmt::Display;

use assay_auth::Caller;
use assay_database::begin;
use assay_events::publish;
use assay_proto::{
    EnvironmentId, Fault, ProjectId,
    catalog::{
        CreateEnvironmentRequest, DeleteEnvironmentRequest, Environment, EnvironmentBatch,
        EnvironmentEntry, GetEnvironmentRequest, ListEnvironmentsRequest, ListFilter, Subject,
        UpdateEnvironmentRequest, environment_service_server,
    },
};
use assay_records::{Action, Change, appliances};
use assay_rpc::list::{self, Batches, Rows, Slice};
use sqlx::PgPool;
use tonic::{Request, Response, Status};

use self::rules::CONTAINED_SUBJECT;
use crate::{
    deletion,
    event::EventSource,
    filter, project,
    records::Records,
    secrets::{self, MASK, RecordSecrets, Secrets},
};

/// The field of an environment that is secret.
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
        let filter = filter::active_or_archived(request.archived);
        list::answer(request.page, move |slice| {
            let (this, caller) = (this.clone(), caller.clone());
            async move { this.list(&caller, project, filter, &slice).await }
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
        let mut environment =
            Records::<Environment>::of(caller.customer, project).get(&self.db, id).await?;
        let secrets = self.secrets_of(&caller, id);
        environment.password = secrets.show(PASSWORD, &environment.password)?;
        let seen = secrets.seen(EventSource::Environment(project, id));
        secrets::publish_seen(&self.db, &caller, seen).await?;
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
        project::store::lock_shared(&mut tx, customer, project).await?;
        let subjects = Records::<Subject>::of(customer, project);
        subjects.lock_referenced(&mut tx, CONTAINED_SUBJECT, subject).await?;
        appliances::check(&mut *tx, customer, &input.target_group).await?;
        files::resolve(&mut tx, customer, project, id, &mut input, None).await?;
        let mut environment = store::insert(&mut tx, customer, project, id, &input).await?;
        publish(
            &mut tx,
            &EventSource::Environment(project, id).event(Action::Created, customer, Some("1"))?,
        )
        .await?;
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
        let mut current = Records::<Environment>::of(customer, project).lock(&mut tx, id).await?;
        let stored = std::mem::replace(&mut current.password, MASK.to_owned());
        let mut input =
            rules::valid(change.apply("environment", &current, &current.data_version)?)?;
        let subject = rules::contained_subject(&input)?;
        if input.contained_subject != current.contained_subject {
            let subjects = Records::<Subject>::of(customer, project);
            subjects.lock_referenced(&mut tx, CONTAINED_SUBJECT, subject).await?;
        }
        if input.target_group != current.target_group {
            appliances::check(&mut *tx, customer, &input.target_group).await?;
        }
        input.password = secrets.store(PASSWORD, &input.password, Some(&stored))?;
        files::resolve(&mut tx, customer, project, id, &mut input, Some(&current)).await?;
        let mut environment = store::update(&mut tx, customer, project, id, &input).await?;
        let action = Action::of_change(current.archived, environment.archived);
        publish(
            &mut tx,
            &EventSource::Environment(project, id).event(
                action,
                customer,
                Some(&environment.data_version),
            )?,
        )
        .await?;
        environment.password = secrets.show(PASSWORD, &environment.password)?;
        let seen = secrets.seen(EventSource::Environment(project, id));
        secrets::publish_seen_with(&mut tx, &caller, seen).await?;
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
        project::store::lock_exclusive(&mut tx, customer, project).await?;
        deletion::delete_environment(&mut tx, customer, project, id).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(()))
    }
}

impl EnvironmentService {
    fn secrets_of(&self, caller: &Caller, id: impl Display) -> RecordSecrets {
        self.secrets.of("environment", id, caller)
    }

    /// Lists a slice of the environments, with the passwords as the caller may see them.
    async fn list(
        &self,
        caller: &Caller,
        project: ProjectId,
        filter: ListFilter,
        slice: &Slice,
    ) -> Result<Rows<EnvironmentEntry>, Fault> {
        let records = Records::<Environment>::of(caller.customer, project);
        let mut environments = records.list(&self.db, caller.user, filter, &[], slice).await?;
        let mut seen = Vec::new();
        for environment in &mut environments.items {
            let id = EnvironmentId::from_record(&environment.id)?;
            let secrets = self.secrets_of(caller, id);
            environment.password = secrets.show(PASSWORD, &environment.password)?;
            seen.extend(secrets.seen(EventSource::Environment(project, id)));
        }
        secrets::publish_seen(&self.db, caller, seen).await?;
        Ok(environments)
    }
}
