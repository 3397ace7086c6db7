//! `AuditService`: the audit log. An entry is written in the transaction of the change that it
//! records.

mod entry;
mod store;

use assay_auth::Caller;
use assay_proto::{
    Fault, UserId,
    identity::{AuditEntryBatch, ListAuditEntriesRequest, audit_service_server},
};
use assay_rpc::list::{self, Batches};
use sqlx::{PgPool, PgTransaction};
use tonic::{Request, Response, Status};

pub(crate) use self::{
    entry::{Actor, Entry},
    store::{prune, record_of_account, record_refused_login},
};

/// Records an action of a user in the audit log of the customer.
pub(crate) async fn record(
    tx: &mut PgTransaction<'_>,
    actor: impl Into<Actor>,
    entry: Entry,
) -> Result<(), Fault> {
    store::insert(tx, &actor.into(), &entry).await
}

pub(crate) struct AuditService {
    pub(crate) db: PgPool,
}

#[tonic::async_trait]
impl audit_service_server::AuditService for AuditService {
    type ListAuditEntriesStream = Batches<AuditEntryBatch>;

    async fn list_audit_entries(
        &self,
        request: Request<ListAuditEntriesRequest>,
    ) -> Result<Response<Self::ListAuditEntriesStream>, Status> {
        let customer = Caller::of(&request)?.customer;
        let request = request.into_inner();
        let filter = store::Filter {
            from: request.from,
            to: request.to,
            user: UserId::from_field_if_any("userId", request.user_id.as_deref())?,
            action: request.action,
        };
        let db = self.db.clone();
        list::answer(request.page, move |slice| {
            let (db, filter) = (db.clone(), filter.clone());
            async move { store::list(&db, customer, &filter, &slice).await }
        })
        .await
    }
}
