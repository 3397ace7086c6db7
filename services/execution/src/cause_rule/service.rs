//! The gRPC service of cause rules.

use assay_auth::Caller;
use assay_database::begin;
use assay_events::{RecordKind, publish};
use assay_ledger::{cause_rule::store, event, failure::derivation};
use assay_proto::{
    CauseRuleId, Fault, ProjectId,
    execution::{
        CauseRule, CauseRuleBatch, CauseRulePreview, CreateCauseRuleRequest,
        DeleteCauseRuleRequest, ListCauseRulesRequest, PreviewCauseRuleRequest,
        cause_rule_service_server,
    },
};
use assay_records::Action;
use assay_rpc::list::{Batches, answer};
use sqlx::PgPool;
use tonic::{Request, Response, Status};

use super::{preview, resolve::resolve, rules};
use crate::{catalog::Catalog, parent};

/// The gRPC service of cause rules.
pub(crate) struct CauseRuleService {
    pub(crate) db: PgPool,
    pub(crate) catalog: Catalog,
}

#[tonic::async_trait]
impl cause_rule_service_server::CauseRuleService for CauseRuleService {
    type ListCauseRulesStream = Batches<CauseRuleBatch>;

    async fn list_cause_rules(
        &self,
        request: Request<ListCauseRulesRequest>,
    ) -> Result<Response<Self::ListCauseRulesStream>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let project =
            parent::project(&self.db, &self.catalog, &caller, &request.project_id).await?;
        let (db, customer) = (self.db.clone(), caller.customer);
        answer(request.page, move |slice| {
            let db = db.clone();
            async move { store::list(&db, customer, project, &slice).await }
        })
        .await
    }

    async fn create_cause_rule(
        &self,
        request: Request<CreateCauseRuleRequest>,
    ) -> Result<Response<CauseRule>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let input = request.cause_rule.unwrap_or_default();
        let kind = rules::check(&input)?;
        let project =
            parent::project(&self.db, &self.catalog, &caller, &request.project_id).await?;
        let (customer, comment) = (caller.customer, input.comment.unwrap_or_default());
        let mut tx = begin(&self.db).await?;
        store::lock(&mut tx, customer, project).await?;
        let (_, rule) = resolve(&mut tx, customer, project, kind).await?;
        let rule = store::create(&mut tx, &caller, project, &rule, &comment).await?;
        store::check_number(&mut tx, customer, project).await?;
        derivation::request(&mut tx, customer, project).await?;
        let id = CauseRuleId::from_record(&rule.id)?;
        let record = (RecordKind::CauseRule, id);
        publish(&mut tx, &event::record(customer, project, record, Action::Created)?).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(rule))
    }

    async fn delete_cause_rule(
        &self,
        request: Request<DeleteCauseRuleRequest>,
    ) -> Result<Response<()>, Status> {
        let customer = Caller::of(&request)?.customer;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let id = CauseRuleId::from_path(&request.id)?;
        let mut tx = begin(&self.db).await?;
        store::lock(&mut tx, customer, project).await?;
        store::delete(&mut tx, customer, project, id).await?;
        derivation::request(&mut tx, customer, project).await?;
        let record = (RecordKind::CauseRule, id);
        publish(&mut tx, &event::record(customer, project, record, Action::Deleted)?).await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(()))
    }

    async fn preview_cause_rule(
        &self,
        request: Request<PreviewCauseRuleRequest>,
    ) -> Result<Response<CauseRulePreview>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let kind = rules::check(&request.cause_rule.unwrap_or_default())?;
        let project =
            parent::project(&self.db, &self.catalog, &caller, &request.project_id).await?;
        Ok(Response::new(preview::of(&self.db, caller.customer, project, kind).await?))
    }
}
