//! Lookups of records that do not count as openings.

use assay_proto::catalog::{lookup_service_client::LookupServiceClient, *};
use assay_rpc::grpc::Channel;
use assay_testkit::assert_planned_once;
use tonic::Response;

use crate::{
    user::User,
    world::{Answer, World, fault},
};

fn lookups(user: &User) -> LookupServiceClient<Channel> {
    LookupServiceClient::new(user.channel.clone())
}

pub(crate) async fn find(user: &User, request: FindRecordsRequest) -> Answer<()> {
    lookups(user).find_records(user.call(request)).await.map(Response::into_inner)
}

async fn origin(user: &User, project: &str, case: &str, plan: &str) -> Answer<Origin> {
    let request = GetOriginRequest {
        project_id: project.to_owned(),
        test_case_id: case.to_owned(),
        test_plan_id: plan.to_owned(),
    };
    lookups(user).get_origin(user.call(request)).await.map(Response::into_inner)
}

#[tokio::test]
async fn a_record_is_found_only_in_its_project() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let case = user.case(&project, "PAY").await;
    let set = user.set(&project, &[&case]).await;
    let all = FindRecordsRequest {
        project_id: project.id.clone(),
        test_case_id: Some(case.id.clone()),
        test_set_id: Some(set.id.clone()),
        environment_id: None,
    };

    find(&user, all.clone()).await.unwrap();
    find(&user, FindRecordsRequest { project_id: project.id.clone(), ..Default::default() })
        .await
        .unwrap();

    let other = user.project().await;
    for wrong in [
        FindRecordsRequest { project_id: other.id.clone(), ..all.clone() },
        FindRecordsRequest { project_id: case.id.clone(), ..all.clone() },
        FindRecordsRequest { test_case_id: Some(set.id.clone()), ..all.clone() },
        FindRecordsRequest { test_set_id: Some(case.id.clone()), ..all.clone() },
        FindRecordsRequest { environment_id: Some(case.id.clone()), ..all.clone() },
        FindRecordsRequest { environment_id: Some("0".to_owned()), ..all.clone() },
    ] {
        assert_eq!(fault(find(&user, wrong.clone()).await), "not_found", "{wrong:?}");
    }
    let stranger = world.user().await;
    assert_eq!(fault(find(&stranger, all.clone()).await), "not_found");

    let delete = user.call(DeleteProjectRequest { id: project.id.clone() });
    user.projects().delete_project(delete).await.unwrap();
    assert_eq!(fault(find(&user, all).await), "not_found");
}

#[tokio::test]
async fn the_origin_of_a_deleted_record_is_found() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let case = user.case(&project, "PAY").await;
    let plan = user.ready_plan(&case).await;

    let found = origin(&user, &project.id, &case.id, &plan.id).await.unwrap();
    let (project_origin, case_origin, plan_origin) =
        (found.project.unwrap(), found.test_case.unwrap(), found.test_plan.unwrap());
    assert_eq!((project_origin.name.as_str(), project_origin.deleted), ("Shop", false));
    assert_eq!((&case_origin.identifier, case_origin.deleted), (&case.identifier, false));
    assert_eq!((plan_origin.revision, plan_origin.status), (plan.revision, plan.status));

    let delete = DeleteTestCaseRequest { project_id: project.id.clone(), id: case.id.clone() };
    user.cases().delete_test_case(user.call(delete)).await.unwrap();
    let found = origin(&user, &project.id, &case.id, &plan.id).await.unwrap();
    assert!(found.test_case.unwrap().deleted && found.test_plan.unwrap().deleted);
    assert!(!found.project.unwrap().deleted);

    let stranger = world.user().await;
    assert_eq!(fault(origin(&stranger, &project.id, &case.id, &plan.id).await), "not_found");
    assert_eq!(fault(origin(&user, &project.id, &plan.id, &plan.id).await), "not_found");
}

/// Other services look up a project for most of their requests.
#[tokio::test]
async fn postgresql_plans_lookups_of_projects_once() {
    let world = World::start().await;
    let user = world.user().await;
    let project_id = user.project().await.id;
    for _ in 0..200 {
        let request = FindRecordsRequest { project_id: project_id.clone(), ..Default::default() };
        find(&user, request).await.unwrap();
    }
    assert_planned_once(&world.db, "select exists (%from project%$5::uuid%").await;
}
