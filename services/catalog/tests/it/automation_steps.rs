//! Automation steps, and transfers of plans with their steps.

use assay_proto::{PlanStatus, TestType, VariableInput, catalog::*};
use tonic::Response;

use crate::{
    user::User,
    world::{Answer, World, fault, invalid_fields, take_snapshot, target},
};

const CANARY: &str = "canary-7f3a";

fn step(step_nr: Option<i32>, comment: &str) -> AutomationStepInput {
    AutomationStepInput {
        step_nr,
        test_input: format!("do {comment}"),
        expected_result: "done".into(),
        comment: comment.into(),
    }
}

fn comments(steps: &AutomationSteps) -> Vec<(i32, &str)> {
    steps.items.iter().map(|step| (step.step_nr, step.comment.as_str())).collect()
}

impl User {
    async fn replace_steps(
        &self,
        case: &TestCase,
        plan: &TestPlan,
        data_version: Option<&str>,
        steps: Vec<AutomationStepInput>,
    ) -> Answer<AutomationSteps> {
        let request = ReplaceAutomationStepsRequest {
            project_id: case.project_id.clone(),
            test_case_id: case.id.clone(),
            test_plan_id: plan.id.clone(),
            data_version: data_version.map(ToOwned::to_owned),
            steps,
        };
        let steps = self.plans().replace_automation_steps(self.call(request)).await;
        steps.map(Response::into_inner)
    }

    async fn steps(
        &self,
        case: &TestCase,
        plan: &TestPlan,
        comment: Option<&str>,
        count: Option<i32>,
    ) -> Answer<AutomationSteps> {
        let request = GetAutomationStepsRequest {
            project_id: case.project_id.clone(),
            test_case_id: case.id.clone(),
            test_plan_id: plan.id.clone(),
            comment: comment.map(ToOwned::to_owned),
            count,
        };
        self.plans().get_automation_steps(self.call(request)).await.map(Response::into_inner)
    }

    async fn transfer(&self, case: &TestCase, plan: &TestPlan, new_type: &str) -> Answer<TestPlan> {
        let request = TransferTestPlanRequest {
            project_id: case.project_id.clone(),
            test_case_id: case.id.clone(),
            id: plan.id.clone(),
            new_type: new_type.into(),
        };
        self.plans().transfer_test_plan(self.call(request)).await.map(Response::into_inner)
    }
}

async fn planned(user: &User) -> (TestCase, TestPlan) {
    let case = user.case(&user.project().await, "login").await;
    let plan = user.create_plan(&case, TestPlanInput::default()).await.unwrap();
    (case, plan)
}

#[tokio::test]
async fn steps_are_replaced_as_a_whole_and_read_in_their_order() {
    let world = World::start().await;
    let user = world.user().await;
    let (case, plan) = planned(&user).await;
    assert_eq!(user.steps(&case, &plan, None, None).await.unwrap().items, []);

    let steps = vec![step(Some(3), "Log OUT"), step(None, "look"), step(Some(1), "log in")];
    let replaced = user.replace_steps(&case, &plan, None, steps).await.unwrap();
    assert_eq!(comments(&replaced), [(1, "log in"), (2, "look"), (3, "Log OUT")]);
    assert_eq!(user.steps(&case, &plan, None, None).await.unwrap(), replaced);
    assert_eq!(user.get_plan(&plan.id).await.data_version, replaced.data_version);

    for (comment, count, expected) in [
        (Some("log"), None, vec![1, 3]),
        (Some("LOG"), Some(1), vec![1]),
        (Some("%"), None, vec![]),
        (None, Some(2), vec![1, 2]),
        (None, Some(0), vec![]),
    ] {
        let selected = user.steps(&case, &plan, comment, count).await.unwrap();
        let numbers: Vec<i32> = selected.items.iter().map(|step| step.step_nr).collect();
        assert_eq!(numbers, expected, "{comment:?} {count:?}");
    }
    assert_eq!(invalid_fields(user.steps(&case, &plan, None, Some(-1)).await), ["count"]);
    let replaced = user.replace_steps(&case, &plan, None, Vec::new()).await.unwrap();
    assert_eq!(replaced.items, []);
}

#[tokio::test]
async fn step_numbers_start_at_1_and_are_unique() {
    let world = World::start().await;
    let user = world.user().await;
    let (case, plan) = planned(&user).await;
    let wrong = vec![step(Some(2), "a"), step(None, "b\0"), step(Some(0), "c")];
    let wrong = user.replace_steps(&case, &plan, None, wrong).await;
    assert_eq!(invalid_fields(wrong), ["1/Comment", "1/StepNr", "1/TestInput", "2/StepNr"]);
    assert_eq!(user.steps(&case, &plan, None, None).await.unwrap().items, []);
}

#[tokio::test]
async fn a_stale_version_or_an_executed_plan_prevents_changes_of_steps() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let case = user.case(&project, "login").await;
    let plan = user.ready_plan(&case).await;
    let steps = || vec![step(None, "log in")];
    let replaced = user.replace_steps(&case, &plan, Some(&plan.data_version), steps()).await;
    let replaced = replaced.unwrap();
    let stale = user.replace_steps(&case, &plan, Some(&plan.data_version), Vec::new()).await;
    assert_eq!(fault(stale), "stale_data_version");

    let set = user.set(&project, &[&case]).await;
    take_snapshot(&user, target(&set), false).await.unwrap();
    let frozen = user.replace_steps(&case, &plan, None, Vec::new()).await;
    assert_eq!(fault(frozen), "test_plan_frozen");
    assert_eq!(user.steps(&case, &plan, None, None).await.unwrap(), replaced);
}

#[tokio::test]
async fn steps_are_found_only_under_their_case_and_project() {
    let world = World::start().await;
    let user = world.user().await;
    let (case, plan) = planned(&user).await;
    let elsewhere = user.case(&user.project().await, "login").await;
    let stranger = world.user().await;
    let wrong_project = TestCase { project_id: elsewhere.project_id.clone(), ..case.clone() };
    for (user, case) in [(&user, &elsewhere), (&user, &wrong_project), (&stranger, &case)] {
        assert_eq!(fault(user.steps(case, &plan, None, None).await), "not_found");
        assert_eq!(fault(user.replace_steps(case, &plan, None, vec![]).await), "not_found");
        assert_eq!(fault(user.transfer(case, &plan, "Default").await), "not_found");
    }
}

#[tokio::test]
async fn engines_and_authors_may_write_steps_and_readers_may_not() {
    let world = World::start().await;
    let user = world.user().await;
    let (case, plan) = planned(&user).await;
    for (permissions, reads, writes) in [
        ("Automation", true, true),
        ("Write", false, true),
        ("Read", true, false),
        ("Execute", false, false),
    ] {
        let colleague = world.colleague(&user, permissions).await;
        let read = colleague.steps(&case, &plan, None, None).await;
        assert_eq!(read.is_ok(), reads, "{permissions}");
        let written = colleague.replace_steps(&case, &plan, None, Vec::new()).await;
        assert_eq!(written.is_ok(), writes, "{permissions}");
    }
}

#[tokio::test]
async fn a_transfer_copies_a_plan_to_the_next_revision_with_another_type() {
    let world = World::start().await;
    let user = world.user().await;
    let case = user.case(&user.project().await, "login").await;
    let secret = VariableInput {
        name: "token".into(),
        is_secured: true,
        content: CANARY.into(),
        ..VariableInput::default()
    };
    let input = TestPlanInput {
        instances: Some(7),
        minimum_duration_in_min: Some(2.5),
        description: Some("quick".into()),
        input_file_id: Some("file".into()),
        variables: vec![secret],
        ..TestPlanInput::default()
    };
    let plan = user.create_plan(&case, input).await.unwrap();
    user.replace_steps(&case, &plan, None, vec![step(None, "log in")]).await.unwrap();
    let mut ready = TestPlanInput::default();
    ready.set_status(PlanStatus::ReadyForExecution);
    let plan = user.get_plan(&plan.id).await;
    let plan = user.update_plan(&case, &plan, ready, &["Status"]).await.unwrap();

    let copy = user.transfer(&case, &plan, "Performance").await.unwrap();
    let expected = TestPlan {
        id: copy.id.clone(),
        data_version: copy.data_version.clone(),
        revision: 2,
        test_type: TestType::Performance.into(),
        status: PlanStatus::New.into(),
        ..plan.clone()
    };
    assert_eq!(copy, expected);
    assert_ne!(copy.id, plan.id);
    let steps = user.steps(&case, &copy, None, None).await.unwrap();
    assert_eq!(comments(&steps), [(1, "log in")]);
    let insider = world.colleague(&user, "Read, AccessSecrets").await;
    assert_eq!(insider.get_plan(&copy.id).await.variables[0].content, CANARY);
    assert_eq!(user.get_plan(&plan.id).await, plan, "the original is unchanged");
    let events = world.events().await;
    let (noun, action, data) =
        events.iter().rfind(|(noun, ..)| noun == "test_plan").expect("an event of the copy");
    assert_eq!((noun.as_str(), action.as_str()), ("test_plan", "created"));
    assert_eq!(data["SourceId"], copy.id);

    for unknown in ["performance", "Load", "", "Unspecified"] {
        assert_eq!(invalid_fields(user.transfer(&case, &plan, unknown).await), ["newType"]);
    }
    assert_eq!(user.get_case(&case.id).await.test_plan_list.unwrap().items.len(), 2);
}
