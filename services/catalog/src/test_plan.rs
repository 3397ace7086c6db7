//! Test plans: how a test case is run, in numbered revisions.

pub(crate) mod container;
mod files;
pub(crate) mod rules;
pub(crate) mod store;

use assay_auth::Caller;
use assay_database::begin;
use assay_events::publish;
use assay_proto::{
    Fault, ProjectId, TestCaseId, TestPlanId, Variable,
    catalog::{
        AutomationSteps, CreateTestPlanRequest, GetAutomationStepsRequest, GetTestPlanRequest,
        ReplaceAutomationStepsRequest, TestCase, TestPlan, TransferTestPlanRequest,
        UpdateTestPlanRequest, test_plan_service_server,
    },
};
use assay_records::{Action, Change, input};
use sqlx::PgPool;
use tonic::{Request, Response, Status};

use crate::{
    event::EventSource,
    file::reference,
    records::Records,
    secrets::{self, RecordSecrets, Secrets, masked},
};

pub(crate) struct TestPlanService {
    pub(crate) db: PgPool,
    pub(crate) secrets: Secrets,
}

#[tonic::async_trait]
impl test_plan_service_server::TestPlanService for TestPlanService {
    async fn get_test_plan(
        &self,
        request: Request<GetTestPlanRequest>,
    ) -> Result<Response<TestPlan>, Status> {
        let caller = Caller::of(&request)?;
        let request = request.into_inner();
        let project = ProjectId::from_path_if_any(request.project_id.as_deref())?;
        let case = TestCaseId::from_path_if_any(request.test_case_id.as_deref())?;
        let id = TestPlanId::from_path(&request.id)?;

        let plan = store::get(&self.db, caller.customer, project, case, id).await?;
        let case = TestCaseId::from_record(&plan.test_case_id)?;
        let secrets = self.secrets_of(&caller, id);
        let plan = shown(plan, &secrets)?;
        secrets::publish_seen(
            &self.db,
            &caller,
            secrets.seen(EventSource::TestPlan(project, case, id)),
        )
        .await?;
        Ok(Response::new(plan))
    }

    async fn create_test_plan(
        &self,
        request: Request<CreateTestPlanRequest>,
    ) -> Result<Response<TestPlan>, Status> {
        let caller = Caller::of(&request)?;
        let customer = caller.customer;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let case = TestCaseId::from_path(&request.test_case_id)?;
        let id = TestPlanId::new();
        let secrets = self.secrets_of(&caller, id);
        let mut input = rules::valid(rules::new(request.test_plan.unwrap_or_default()))?;
        input.variables = secrets.store_all(input.variables, &[])?;

        let mut tx = begin(&self.db).await?;
        Records::<TestCase>::of(customer, project).lock(&mut tx, case).await?;
        files::resolve(&mut tx, customer, project, id, &input, None).await?;
        let plan = store::insert(&mut tx, customer, case, id, &input).await?;
        publish(
            &mut tx,
            &EventSource::TestPlan(Some(project), case, id).event(
                Action::Created,
                customer,
                Some(&plan.data_version),
            )?,
        )
        .await?;
        let plan = shown(plan, &secrets)?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(plan))
    }

    async fn update_test_plan(
        &self,
        request: Request<UpdateTestPlanRequest>,
    ) -> Result<Response<TestPlan>, Status> {
        let caller = Caller::of(&request)?;
        let customer = caller.customer;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let case = TestCaseId::from_path(&request.test_case_id)?;
        let id = TestPlanId::from_path(&request.id)?;
        let UpdateTestPlanRequest { data_version, changes, fields, .. } = request;
        let change = Change { data_version, changes, fields };
        let secrets = self.secrets_of(&caller, id);

        let mut tx = begin(&self.db).await?;
        Records::<TestCase>::of(customer, project).lock(&mut tx, case).await?;
        let store::LockedPlan { plan: mut current, is_frozen } =
            store::lock(&mut tx, customer, case, id).await?;
        let stored = hide(&mut current);
        let mut changed = change.apply("test plan", &current, &current.data_version)?;
        secrets.mask_unchanged(&mut changed.variables, &stored)?;
        let mut changed = rules::valid(changed)?;
        if is_frozen {
            rules::allowed_in_frozen_plan(&changed, input(&current)?)?;
        }
        let before = input(&current)?;
        files::resolve(&mut tx, customer, project, id, &changed, Some(&before)).await?;
        changed.variables = secrets.store_all(changed.variables, &stored)?;
        let plan = store::update(&mut tx, customer, case, id, &changed).await?;
        publish(
            &mut tx,
            &EventSource::TestPlan(Some(project), case, id).event(
                Action::Changed,
                customer,
                Some(&plan.data_version),
            )?,
        )
        .await?;
        let plan = shown(plan, &secrets)?;
        secrets::publish_seen_with(
            &mut tx,
            &caller,
            secrets.seen(EventSource::TestPlan(Some(project), case, id)),
        )
        .await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(plan))
    }

    async fn transfer_test_plan(
        &self,
        request: Request<TransferTestPlanRequest>,
    ) -> Result<Response<TestPlan>, Status> {
        let caller = Caller::of(&request)?;
        let customer = caller.customer;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let case = TestCaseId::from_path(&request.test_case_id)?;
        let original = TestPlanId::from_path(&request.id)?;
        let id = TestPlanId::new();
        let secrets = self.secrets_of(&caller, id);

        let mut tx = begin(&self.db).await?;
        Records::<TestCase>::of(customer, project).lock(&mut tx, case).await?;
        let store::LockedPlan { mut plan, .. } =
            store::lock(&mut tx, customer, case, original).await?;
        let of_original = self.secrets_of(&caller, original);
        plan.variables = secrets.copy_all(&of_original, plan.variables)?;
        let copy = rules::transferred(input(&plan)?, &request.new_type)?;
        let plan = store::insert(&mut tx, customer, case, id, &copy).await?;
        store::copy_automation_steps(&mut tx, customer, case, original, id).await?;
        reference::copy(&mut tx, customer, original.0, id.0).await?;
        publish(
            &mut tx,
            &EventSource::TestPlan(Some(project), case, id).event(
                Action::Created,
                customer,
                Some(&plan.data_version),
            )?,
        )
        .await?;
        let plan = shown(plan, &secrets)?;
        secrets::publish_seen_with(
            &mut tx,
            &caller,
            secrets.seen(EventSource::TestPlan(Some(project), case, id)),
        )
        .await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(plan))
    }

    async fn get_automation_steps(
        &self,
        request: Request<GetAutomationStepsRequest>,
    ) -> Result<Response<AutomationSteps>, Status> {
        let customer = Caller::of(&request)?.customer;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let case = TestCaseId::from_path(&request.test_case_id)?;
        let id = TestPlanId::from_path(&request.test_plan_id)?;
        let steps = store::automation_steps(&self.db, customer, project, case, id).await?;
        let items = rules::selected(steps.items, request.comment.as_deref(), request.count)?;
        Ok(Response::new(AutomationSteps { items, ..steps }))
    }

    async fn replace_automation_steps(
        &self,
        request: Request<ReplaceAutomationStepsRequest>,
    ) -> Result<Response<AutomationSteps>, Status> {
        let customer = Caller::of(&request)?.customer;
        let request = request.into_inner();
        let project = ProjectId::from_path(&request.project_id)?;
        let case = TestCaseId::from_path(&request.test_case_id)?;
        let id = TestPlanId::from_path(&request.test_plan_id)?;
        let steps = rules::steps(request.steps)?;

        let mut tx = begin(&self.db).await?;
        Records::<TestCase>::of(customer, project).lock(&mut tx, case).await?;
        let locked = store::lock(&mut tx, customer, case, id).await?;
        if request.data_version.is_some_and(|seen| seen != locked.plan.data_version) {
            return Err(Fault::Stale("test plan").into());
        }
        if locked.is_frozen {
            return Err(rules::frozen().into());
        }
        let steps = store::replace_automation_steps(&mut tx, customer, case, id, &steps).await?;
        publish(
            &mut tx,
            &EventSource::TestPlan(Some(project), case, id).event(
                Action::Changed,
                customer,
                None,
            )?,
        )
        .await?;
        tx.commit().await.map_err(Fault::from)?;
        Ok(Response::new(steps))
    }
}

impl TestPlanService {
    fn secrets_of(&self, caller: &Caller, id: TestPlanId) -> RecordSecrets {
        self.secrets.of("test-plan", id, caller)
    }
}

/// Returns a stored plan as the caller may see it.
fn shown(mut plan: TestPlan, secrets: &RecordSecrets) -> Result<TestPlan, Fault> {
    plan.variables = secrets.show_all(plan.variables)?;
    Ok(plan)
}

/// Masks the secrets of a stored plan and returns its variables as they are stored.
fn hide(plan: &mut TestPlan) -> Vec<Variable> {
    let hidden = masked(&plan.variables);
    std::mem::replace(&mut plan.variables, hidden)
}
