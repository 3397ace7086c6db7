//! Projects, the containers of all other records.

mod rules;
pub(crate) mod store;

use assay_auth::Caller;
use assay_database::begin;
use assay_events::{Event, EventType, publish};
use assay_proto::{
    CustomerId, Fault, ProjectId,
    catalog::{
        CreateProjectRequest, DeleteProjectRequest, GetProjectRequest, ListProjectsRequest,
        Project, ProjectBatch, ProjectInput, RecordKind, UpdateProjectRequest,
        project_service_server,
    },
    events::RetentionChanged,
};
use assay_records::{Action, Change};
use assay_rpc::list::{self, Batches};
use sqlx::{PgPool, PgTransaction};
use tonic::{Request, Response, Status};

use crate::{event::EventSource, filter, opening::Openings};

pub(crate) struct ProjectService {
    pub(crate) db: PgPool,
    pub(crate) openings: Openings,
}

#[tonic::async_trait]
impl project_service_server::ProjectService for ProjectService {
    type ListProjectsStream = Batches<ProjectBatch>;

    async fn list_projects(
        &self,
        request: Request<ListProjectsRequest>,
    ) -> Result<Response<Self::ListProjectsStream>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let filter = request.filter();
        let (db, customer, user) = (self.db.clone(), caller.customer, caller.user);
        list::answer(filter::page(filter, request.page), move |slice| {
            let db = db.clone();
            async move { store::list(&db, customer, user, filter, &slice).await }
        })
        .await
    }

    async fn get_project(
        &self,
        request: Request<GetProjectRequest>,
    ) -> Result<Response<Project>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let id = ProjectId::from_path(&request.id)?;
        let project = store::get(&self.db, caller.customer, id).await?;
        self.openings.note(&caller, RecordKind::Project, id.0, caller.customer.0);
        Ok(Response::new(project))
    }

    async fn create_project(
        &self,
        request: Request<CreateProjectRequest>,
    ) -> Result<Response<Project>, Status> {
        let customer = Caller::of(&request)?.customer;
        let input = request.into_inner().project.unwrap_or_default();
        let mut tx = begin(&self.db).await?;
        let project = create(&mut tx, customer, input).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(project))
    }

    async fn update_project(
        &self,
        request: Request<UpdateProjectRequest>,
    ) -> Result<Response<Project>, Status> {
        let customer = Caller::of(&request)?.customer;
        let UpdateProjectRequest { id, data_version, changes, fields } = request.into_inner();
        let id = ProjectId::from_path(&id)?;
        let change = Change { data_version, changes, fields };

        let mut tx = begin(&self.db).await?;
        let current = store::lock(&mut tx, customer, id).await?;
        let input = rules::valid(change.apply("project", &current, &current.data_version)?)?;
        let project = store::update(&mut tx, customer, id, &input).await?;
        let action = Action::of_change(current.archived, project.archived);
        publish(
            &mut tx,
            &EventSource::Project(customer, id).event(
                action,
                customer,
                Some(&project.data_version),
            )?,
        )
        .await?;
        // Each change of a project with a retention time repeats it, so that it repairs a service that has missed it.
        if project.retention_in_days.is_some() || current.retention_in_days.is_some() {
            publish(&mut tx, &retention(customer, &project)?).await?;
        }
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(project))
    }

    async fn delete_project(
        &self,
        request: Request<DeleteProjectRequest>,
    ) -> Result<Response<()>, Status> {
        let customer = Caller::of(&request)?.customer;
        let id = ProjectId::from_path(&request.get_ref().id)?;

        let mut tx = begin(&self.db).await?;
        store::lock_exclusive(&mut tx, customer, id).await?;
        store::mark_deleted(&mut tx, customer, id).await?;
        publish(
            &mut tx,
            &EventSource::Project(customer, id).event(Action::Deleted, customer, None)?,
        )
        .await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(()))
    }
}

/// Creates a project.
pub(crate) async fn create(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    input: ProjectInput,
) -> Result<Project, Fault> {
    let input = rules::valid(rules::new(input))?;
    let id = ProjectId::new();
    let project = store::insert(tx, customer, id, &input).await?;
    publish(
        tx,
        &EventSource::Project(customer, id).event(
            Action::Created,
            customer,
            Some(&project.data_version),
        )?,
    )
    .await?;
    if project.retention_in_days.is_some() {
        publish(tx, &retention(customer, &project)?).await?;
    }
    Ok(project)
}

/// Returns the event of the time that the results of a project are kept.
fn retention(customer: CustomerId, project: &Project) -> Result<Event, Fault> {
    let changed = RetentionChanged {
        project_id: project.id.clone(),
        retention_in_days: project.retention_in_days,
        revision: project.data_version.parse().map_err(Fault::internal)?,
    };
    Event::new(customer, &project.id, EventType::RetentionSet, &changed)
}
