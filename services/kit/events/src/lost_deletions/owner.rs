//! The services that own customers and projects.

use std::time::Duration;

use assay_proto::{
    CustomerId, Fault, ProjectId,
    catalog::{
        FindDeletedProjectsRequest, ProjectOfCustomer, lookup_service_client::LookupServiceClient,
    },
    identity::{FindDeletedCustomersRequest, customer_service_client::CustomerServiceClient},
};
use assay_rpc::grpc::Channel;
use tonic::{Request, Status};

use super::Key;
use crate::RecordKind;

/// Time limit for a question.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The owner of records, and how to reach it.
#[derive(Clone)]
pub enum Owner {
    /// Identity, which owns customers.
    Identity(Channel),
    /// The catalog, which owns projects.
    Catalog(Channel),
}

impl Owner {
    pub(super) fn kind(&self) -> RecordKind {
        match self {
            Self::Identity(_) => RecordKind::Customer,
            Self::Catalog(_) => RecordKind::Project,
        }
    }

    /// Returns those of some records that the owner has deleted.
    pub(super) async fn deleted(&self, keys: &[Key]) -> Result<Vec<Key>, Fault> {
        match self {
            Self::Identity(channel) => deleted_customers(channel.clone(), keys).await,
            Self::Catalog(channel) => deleted_projects(channel.clone(), keys).await,
        }
    }
}

async fn deleted_customers(channel: Channel, keys: &[Key]) -> Result<Vec<Key>, Fault> {
    let ids = keys.iter().map(|key| key.customer_id.to_string()).collect();
    let request = request(FindDeletedCustomersRequest { ids });
    let deleted = CustomerServiceClient::new(channel).find_deleted_customers(request).await;
    let ids = deleted.map_err(away("identity"))?.into_inner().ids;
    ids.iter().map(|id| Ok(CustomerId::from_record(id)?.0.into())).collect()
}

async fn deleted_projects(channel: Channel, keys: &[Key]) -> Result<Vec<Key>, Fault> {
    let project = |key: &Key| ProjectOfCustomer {
        customer_id: key.customer_id.to_string(),
        project_id: key.project_id.to_string(),
    };
    let projects = keys.iter().map(project).collect();
    let request = request(FindDeletedProjectsRequest { projects });
    let deleted = LookupServiceClient::new(channel).find_deleted_projects(request).await;
    let projects = deleted.map_err(away("the catalog"))?.into_inner().projects;
    let key = |project: ProjectOfCustomer| {
        let customer_id = CustomerId::from_record(&project.customer_id)?;
        Ok(Key { customer_id, project_id: ProjectId::from_record(&project.project_id)? })
    };
    projects.into_iter().map(key).collect()
}

fn request<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(TIMEOUT);
    request
}

fn away(service: &'static str) -> impl Fn(Status) -> Fault {
    move |status| {
        tracing::debug!(%status, "{service} did not answer which records were deleted");
        Fault::Unavailable(service)
    }
}
