//! Records of other customers and other projects can be neither read nor referenced.

use assay_proto::{Reference, catalog::*};

use crate::{
    user::{User, web_page},
    world::{Answer, World, fault, invalid_fields, listed, take_snapshot, target},
};

/// A project with one record of each kind.
#[derive(Clone)]
struct Belongings {
    project: Project,
    case: TestCase,
    plan: TestPlan,
    set: TestSet,
    subject: Subject,
    environment: Environment,
}

impl Belongings {
    async fn of(user: &User) -> Self {
        let project = user.project().await;
        let case = user.case(&project, "login").await;
        let plan = user.ready_plan(&case).await;
        let set = user.set(&project, &[&case]).await;
        let subject = user.subject(&project).await;
        let environment = user.environment(&project).await;
        Self {
            subject: user.get_subject(&project, &subject.id).await,
            environment: user.get_environment(&project, &environment.id).await,
            project,
            case,
            plan,
            set,
        }
    }

    /// The same records under the path of another project.
    fn elsewhere(&self, project: &Project) -> Self {
        let mut moved = self.clone();
        moved.project.clone_from(project);
        moved.case.project_id.clone_from(&project.id);
        moved.set.project_id.clone_from(&project.id);
        moved.subject.project_id.clone_from(&project.id);
        moved.environment.project_id.clone_from(&project.id);
        moved
    }

    /// The errors of all operations on these records by their paths.
    async fn faults(&self, user: &User) -> Vec<String> {
        let project_id = || self.project.id.clone();
        let test_set_id = || self.set.id.clone();
        let plan = GetTestPlanRequest {
            project_id: Some(project_id()),
            test_case_id: Some(self.case.id.clone()),
            id: self.plan.id.clone(),
        };
        let set = GetTestSetRequest { project_id: Some(project_id()), id: test_set_id() };
        let members = ListIncludedTestCasesRequest {
            project_id: project_id(),
            test_set_id: test_set_id(),
            page: None,
        };
        let include = IncludeTestCasesRequest {
            project_id: project_id(),
            test_set_id: test_set_id(),
            test_cases: Vec::new(),
        };
        let exclude = ExcludeTestCasesRequest {
            project_id: project_id(),
            test_set_id: test_set_id(),
            test_cases: Vec::new(),
        };
        let subject = GetSubjectRequest { project_id: project_id(), id: self.subject.id.clone() };
        let environment =
            GetEnvironmentRequest { project_id: project_id(), id: self.environment.id.clone() };
        vec![
            fault(user.find_case(Some(project_id()), &self.case.id).await),
            fault(user.update_case(&self.case, TestCaseInput::default(), &[]).await),
            fault(user.plans().get_test_plan(user.call(plan)).await),
            fault(user.create_plan(&self.case, TestPlanInput::default()).await),
            fault(user.update_plan(&self.case, &self.plan, TestPlanInput::default(), &[]).await),
            fault(user.sets().get_test_set(user.call(set)).await),
            fault(user.update_set(&self.set, TestSetInput::default(), &[]).await),
            fault(user.sets().list_included_test_cases(user.call(members)).await),
            fault(user.sets().include_test_cases(user.call(include)).await),
            fault(user.sets().exclude_test_cases(user.call(exclude)).await),
            fault(user.subjects().get_subject(user.call(subject)).await),
            fault(user.update_subject(&self.subject, SubjectInput::default(), &[]).await),
            fault(user.environments().get_environment(user.call(environment)).await),
            fault(
                user.update_environment(&self.environment, EnvironmentInput::default(), &[]).await,
            ),
            fault(take_snapshot(user, target(&self.set), false).await),
        ]
    }

    /// The errors of creating records in the project.
    async fn creation_faults(&self, user: &User) -> Vec<String> {
        let case = TestCaseInput { name: "x".into(), ..TestCaseInput::default() };
        let set = TestSetInput { name: "x".into(), ..TestSetInput::default() };
        let environment = EnvironmentInput { name: "x".into(), ..EnvironmentInput::default() };
        vec![
            fault(user.create_case(&self.project.id, case).await),
            fault(user.create_set(&self.project, set).await),
            fault(user.create_subject(&self.project, web_page()).await),
            fault(user.create_environment(&self.project, environment).await),
        ]
    }
}

/// Whether all of these errors are `not_found`.
fn all_not_found(faults: &[String]) -> bool {
    faults.iter().all(|fault| fault == "not_found")
}

#[tokio::test]
async fn another_customers_records_are_not_found() {
    let world = World::start().await;
    let theirs = Belongings::of(&world.user().await).await;
    let user = world.user().await;

    let request = user.call(ListProjectsRequest { page: None, filter: 0 });
    assert!(listed(user.projects().list_projects(request).await).await.unwrap().0.is_empty());
    let request = user.call(GetProjectRequest { id: theirs.project.id.clone() });
    assert_eq!(fault(user.projects().get_project(request).await), "not_found");
    let id = theirs.project.id.clone();
    let request = user.call(UpdateProjectRequest { id, ..UpdateProjectRequest::default() });
    assert_eq!(fault(user.projects().update_project(request).await), "not_found");
    assert!(all_not_found(&theirs.creation_faults(&user).await));
    assert!(all_not_found(&theirs.faults(&user).await));
    let ours = user.project().await;
    assert!(all_not_found(&theirs.elsewhere(&ours).faults(&user).await));
}

#[tokio::test]
async fn a_record_is_not_found_under_another_project() {
    let world = World::start().await;
    let user = world.user().await;
    let ours = Belongings::of(&user).await;
    let other = user.project().await;
    assert!(all_not_found(&ours.elsewhere(&other).faults(&user).await));
}

#[tokio::test]
async fn references_to_foreign_and_unknown_records_get_the_same_error() {
    let world = World::start().await;
    let user = world.user().await;
    let ours = Belongings::of(&user).await;
    let elsewhere = Belongings::of(&user).await;
    let theirs = Belongings::of(&world.user().await).await;
    let unknown = "01890a5d-ac96-774b-bcce-b302099a8057";
    let events = world.events().await.len();

    for (case, subject, environment) in [
        (&*elsewhere.case.id, &*elsewhere.subject.id, &*elsewhere.environment.id),
        (&theirs.case.id, &theirs.subject.id, &theirs.environment.id),
        (unknown, unknown, unknown),
        ("nonsense", "nonsense", "nonsense"),
    ] {
        assert_eq!(invalid_subject_fields(&user, &ours, subject).await, ["BaseSubjectId"; 2]);
        assert_eq!(
            invalid_environment_fields(&user, &ours, subject).await,
            ["ContainedSubject"; 2]
        );
        let input = TestSetInput {
            name: "x".into(),
            selected_subject_id: Some(subject.into()),
            selected_environment_id: Some(environment.into()),
            test_cases: vec![Reference { id: case.into() }],
            ..TestSetInput::default()
        };
        assert!(user.create_set(&ours.project, input.clone()).await.is_err());
        for (field, invalid_field) in [
            ("SelectedSubjectId", "SelectedSubjectId"),
            ("SelectedEnvironmentId", "SelectedEnvironmentId"),
            ("TestCases", "TestCases/0/Id"),
        ] {
            let answer = user.update_set(&ours.set, input.clone(), &[field]).await;
            assert_eq!(invalid_fields(answer), [invalid_field]);
        }
        let answer = snapshot(&user, &ours, Some(subject), None).await;
        assert_eq!(invalid_fields(answer), ["SubjectId"]);
        let answer = snapshot(&user, &ours, None, Some(environment)).await;
        assert_eq!(invalid_fields(answer), ["EnvironmentId"]);
    }
    assert_eq!(world.events().await.len(), events, "nothing was stored");
}

/// The fields that creating and updating a subject based on `base` are rejected for.
async fn invalid_subject_fields(user: &User, ours: &Belongings, base: &str) -> Vec<String> {
    let input = SubjectInput { base_subject_id: Some(base.into()), ..web_page() };
    let created = user.create_subject(&ours.project, input.clone()).await;
    let updated = user.update_subject(&ours.subject, input, &["BaseSubjectId"]).await;
    [invalid_fields(created), invalid_fields(updated)].concat()
}

/// The fields that creating and updating an environment with that subject are rejected for.
async fn invalid_environment_fields(user: &User, ours: &Belongings, subject: &str) -> Vec<String> {
    let input = EnvironmentInput {
        name: "x".into(),
        contained_subject: Some(subject.into()),
        ..EnvironmentInput::default()
    };
    let created = user.create_environment(&ours.project, input.clone()).await;
    let fields = ["ContainedSubject"];
    let updated = user.update_environment(&ours.environment, input, &fields).await;
    [invalid_fields(created), invalid_fields(updated)].concat()
}

async fn snapshot(
    user: &User,
    ours: &Belongings,
    subject: Option<&str>,
    environment: Option<&str>,
) -> Answer<()> {
    let target = SnapshotTarget {
        subject_id: subject.map(ToOwned::to_owned),
        environment_id: environment.map(ToOwned::to_owned),
        ..target(&ours.set)
    };
    take_snapshot(user, target, false).await.map(drop)
}

#[tokio::test]
async fn requests_need_a_token_and_the_permission() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let reader = world.colleague(&user, "Read").await;
    let request = reader.call(GetProjectRequest { id: project.id.clone() });
    assert!(reader.projects().get_project(request).await.is_ok());
    let answer = reader.create_case(&project.id, TestCaseInput::default()).await;
    assert_eq!(fault(answer), "forbidden");
    let request = tonic::Request::new(GetProjectRequest { id: project.id });
    assert_eq!(fault(reader.projects().get_project(request).await), "unauthenticated");
}
