//! The gRPC service of cause rules.

use assay_auth::Caller;
use assay_database::begin;
use assay_events::publish;
use assay_ledger::{
    cause_rule::{
        event,
        store::{self, Kind},
    },
    failure::derivation,
};
use assay_proto::{
    CauseRuleId, CustomerId, Fault, ProjectId,
    catalog::FindRecordsRequest,
    execution::{
        CauseRule, CauseRuleBatch, CauseRulePreview, CreateCauseRuleRequest,
        DeleteCauseRuleRequest, ListCauseRulesRequest, PreviewCauseRuleRequest,
        cause_rule_service_server,
    },
};
use assay_records::{Action, Check};
use assay_rpc::list::{Batches, answer};
use sqlx::{PgPool, PgTransaction};
use tonic::{Request, Response, Status};

use super::{preview, rules};
use crate::{catalog::Catalog, parent};

/// The gRPC service of cause rules.
pub(crate) struct CauseRuleService {
    pub(crate) db: PgPool,
    pub(crate) catalog: Catalog,
}

impl CauseRuleService {
    /// Returns the project of a request, if it exists.
    async fn project(&self, caller: &Caller, id: &str) -> Result<ProjectId, Status> {
        let project = ProjectId::from_path(id)?;
        let record = FindRecordsRequest { project_id: id.to_owned(), ..Default::default() };
        parent::check_exists(&self.db, &self.catalog, caller, project, record).await?;
        Ok(project)
    }
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
        let project = self.project(&caller, &request.project_id).await?;
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
        let project = self.project(&caller, &request.project_id).await?;
        let (customer, comment) = (caller.customer, input.comment.unwrap_or_default());
        let mut tx = begin(&self.db).await?;
        store::lock(&mut tx, customer, project).await?;
        let headlines = headlines(&mut tx, customer, project, &kind).await?;
        let rule = store::create(&mut tx, &caller, project, (&kind, &comment), headlines).await?;
        store::check_number(&mut tx, customer, project).await?;
        derivation::request(&mut tx, customer, project).await?;
        let id = CauseRuleId::from_record(&rule.id)?;
        publish(&mut tx, &event::record(customer, project, id, Action::Created)?).await?;
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
        publish(&mut tx, &event::record(customer, project, id, Action::Deleted)?).await?;
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
        let project = self.project(&caller, &request.project_id).await?;
        Ok(Response::new(preview::of(&self.db, caller.customer, project, &kind).await?))
    }
}

/// Returns the messages of the causes that a rule joins. Fails if the project has no such failures, or if the
/// rules would have a circle.
async fn headlines(
    tx: &mut PgTransaction<'_>,
    customer: CustomerId,
    project: ProjectId,
    kind: &Kind,
) -> Result<Option<(String, String)>, Fault> {
    let Kind::Same(one, other) = kind else { return Ok(None) };
    let current = store::of_project(&mut **tx, customer, &project.to_string()).await?;
    rules::check_circle(&current, *one, *other)?;
    let headline = store::headline(&mut **tx, customer, project, *one).await?;
    let same = store::headline(&mut **tx, customer, project, *other).await?;
    let mut check = Check::default();
    for (field, found) in [("Fingerprint", &headline), ("SameAs", &same)] {
        if found.is_none() {
            check.refuse(field, "must be of a failure of the project");
        }
    }
    check.done()?;
    Ok(headline.zip(same))
}
