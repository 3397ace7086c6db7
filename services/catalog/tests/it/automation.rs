//! Plans, subjects and environments as engines read them.

use assay_proto::{
    VariableInput,
    catalog::{automation_service_client::AutomationServiceClient, *},
};
use futures::TryStreamExt;

use crate::{
    user::{User, web_page},
    world::{Answer, World, invalid_fields},
};

const CANARY: &str = "canary-19ac";

fn secret(name: &str) -> VariableInput {
    VariableInput {
        name: name.into(),
        is_secured: true,
        content: CANARY.into(),
        ..VariableInput::default()
    }
}

async fn records(
    user: &User,
    request: GetAutomationRecordsRequest,
) -> Answer<AutomationRecordsBatch> {
    let mut automation = AutomationServiceClient::new(user.channel.clone());
    let parts = automation.get_automation_records(user.call(request)).await?.into_inner();
    let parts: Vec<_> = parts.try_collect().await?;
    Ok(parts.into_iter().fold(AutomationRecordsBatch::default(), |mut all, part| {
        all.test_plans.extend(part.test_plans);
        all.subjects.extend(part.subjects);
        all.environments.extend(part.environments);
        all.files.extend(part.files);
        all
    }))
}

#[tokio::test]
async fn an_engine_reads_secrets_in_clear_except_those_of_deleted_projects() {
    let world = World::start().await;
    let user = world.user().await;
    let engine = world.colleague(&user, "Automation").await;
    let project = user.project().await;
    let case = user.case(&project, "login").await;
    let plan = TestPlanInput { variables: vec![secret("PIN")], ..TestPlanInput::default() };
    let plan = user.create_plan(&case, plan).await.unwrap();
    let other = user.create_plan(&case, TestPlanInput::default()).await.unwrap();
    let subject = SubjectInput { variables: vec![secret("TOKEN")], ..web_page() };
    let subject = user.create_subject(&project, subject).await.unwrap();
    let environment = EnvironmentInput {
        name: "Lab".into(),
        target_group: "pads".into(),
        password: CANARY.into(),
        ..EnvironmentInput::default()
    };
    let environment = user.create_environment(&project, environment).await.unwrap();
    let request = GetAutomationRecordsRequest {
        test_plan_ids: vec![plan.id.clone(), other.id, project.id.clone()],
        subject_ids: vec![subject.id],
        environment_ids: vec![environment.id],
    };
    let before = records(&engine, request.clone()).await.unwrap();
    let request_to_delete = DeleteProjectRequest { id: project.id.clone() };
    user.projects().delete_project(user.call(request_to_delete)).await.unwrap();

    let after = records(&engine, request.clone()).await.unwrap();

    assert_eq!(before.test_plans.len(), 2, "the id of a project is ignored");
    assert_eq!(after, AutomationRecordsBatch::default());
    let found = before.test_plans.iter().find(|found| found.id == plan.id).unwrap();
    assert_eq!((&found.test_case_id, found.revision, found.instances), (&case.id, 1, 1));
    assert_eq!(found.variables[0].content, CANARY);
    assert_eq!(before.subjects[0].variables[0].content, CANARY);
    let lab = &before.environments[0];
    assert_eq!((lab.password.as_str(), lab.target_group.as_str()), (CANARY, "pads"));
    let seen = world.events().await.into_iter().filter(|(noun, ..)| noun == "secrets");
    let seen: Vec<_> = seen.map(|(_, _, data)| data["Source"].clone()).collect();
    assert_eq!(seen.len(), 3, "{seen:?}");

    let stranger = world.user().await;
    let stranger = world.colleague(&stranger, "Automation").await;
    let nothing = records(&stranger, request).await.unwrap();
    assert_eq!(nothing, AutomationRecordsBatch::default());
    let denied = records(&user, GetAutomationRecordsRequest::default()).await.unwrap_err();
    assert_eq!(denied.code(), tonic::Code::PermissionDenied);
}

#[tokio::test]
async fn an_engine_does_not_receive_deleted_plans() {
    let world = World::start().await;
    let user = world.user().await;
    let engine = world.colleague(&user, "Automation").await;
    let project = user.project().await;
    let [kept, deleted] = [user.case(&project, "a").await, user.case(&project, "b").await];
    let [kept, plan] = [user.ready_plan(&kept).await, user.ready_plan(&deleted).await];
    let request = GetAutomationRecordsRequest {
        test_plan_ids: vec![plan.id, kept.id.clone()],
        ..GetAutomationRecordsRequest::default()
    };
    let deletion = DeleteTestCaseRequest { project_id: project.id, id: deleted.id };
    user.cases().delete_test_case(user.call(deletion)).await.unwrap();
    let plans = records(&engine, request).await.unwrap().test_plans;
    assert_eq!(plans.iter().map(|plan| plan.id.as_str()).collect::<Vec<_>>(), [kept.id]);
}

#[tokio::test]
async fn a_request_names_at_most_100_records_of_a_kind() {
    let world = World::start().await;
    let user = world.user().await;
    let engine = world.colleague(&user, "Automation").await;
    let id = user.project().await.id;
    let too_many = GetAutomationRecordsRequest {
        subject_ids: vec![id; 101],
        ..GetAutomationRecordsRequest::default()
    };
    assert_eq!(invalid_fields(records(&engine, too_many).await), ["SubjectIds"]);
    let no_id = GetAutomationRecordsRequest {
        environment_ids: vec!["0".into()],
        ..GetAutomationRecordsRequest::default()
    };
    assert_eq!(invalid_fields(records(&engine, no_id).await), ["EnvironmentIds"]);
}

/// Downloads a file for the work with these records.
async fn download(user: &User, records: &[&str], file: &str) -> Answer<Vec<u8>> {
    let request = DownloadAutomationFileRequest {
        record_ids: records.iter().map(ToString::to_string).collect(),
        id: file.to_owned(),
        ..DownloadAutomationFileRequest::default()
    };
    let mut automation = AutomationServiceClient::new(user.channel.clone());
    let parts = automation.download_automation_file(user.call(request)).await?.into_inner();
    let chunks: Vec<_> = parts.map_ok(|part| part.chunk).try_collect().await?;
    Ok(chunks.concat())
}

#[tokio::test]
async fn an_engine_reads_the_files_of_its_records_and_no_others() {
    let world = World::start().await;
    let user = world.user().await;
    let engine = world.colleague(&user, "Automation").await;
    let (project, images) = (user.project().await, user.project().await);
    let input = user.upload(&project, "input.csv", b"a,b").await.unwrap();
    let container = user.upload(&project, "shop.tar", b"container").await.unwrap();
    let image = user.upload(&images, "linux.img", b"image").await.unwrap();
    let unused = user.upload(&project, "unused", b"unused").await.unwrap();
    let case = user.case(&project, "login").await;
    let plan = TestPlanInput {
        input_file_id: Some(input.id.clone()),
        supporting_files_id: Some("elsewhere/7".into()),
        automation_supporting_files_id: Some(input.id.clone()),
        automated_test_container_id: Some(container.id.clone()),
        ..TestPlanInput::default()
    };
    let plan = user.create_plan(&case, plan).await.unwrap();
    let environment = EnvironmentInput {
        name: "Lab".into(),
        image_file_id: Some(image.id.clone()),
        file_project_id: images.id.clone(),
        ..EnvironmentInput::default()
    };
    let environment = user.create_environment(&project, environment).await.unwrap();
    let request = GetAutomationRecordsRequest {
        test_plan_ids: vec![plan.id.clone()],
        environment_ids: vec![environment.id.clone()],
        ..GetAutomationRecordsRequest::default()
    };

    let found = records(&engine, request).await.unwrap();

    assert_eq!(found.test_plans[0].supporting_files_id.as_deref(), Some("elsewhere/7"));
    let of = |file: &StoredFile, record: &str| AutomationFile {
        id: file.id.clone(),
        record_id: record.to_owned(),
        name: file.name.clone(),
        size: file.size,
        sha256: file.sha256.clone(),
    };
    let of_plan = [of(&input, &plan.id), of(&container, &plan.id)];
    assert_eq!(found.files, [&of_plan[..], &[of(&image, &environment.id)]].concat());
    let both = [plan.id.as_str(), environment.id.as_str()];
    assert_eq!(download(&engine, &both, &input.id).await.unwrap(), b"a,b");
    assert_eq!(download(&engine, &both, &image.id).await.unwrap(), b"image");
    assert_eq!(download(&engine, &both, &container.id).await.unwrap(), b"container");
    for (records, file) in [
        (&both[..], &unused),
        (&both[..1], &image),
        (&[case.id.as_str(), project.id.as_str()], &input),
        (&[], &input),
    ] {
        let missing = download(&engine, records, &file.id).await.unwrap_err();
        assert_eq!(missing.code(), tonic::Code::NotFound, "{records:?}");
    }
    let stranger = world.user().await;
    let stranger = world.colleague(&stranger, "Automation").await;
    let missing = download(&stranger, &both, &input.id).await.unwrap_err();
    assert_eq!(missing.code(), tonic::Code::NotFound);
    let denied = download(&user, &both, &input.id).await.unwrap_err();
    assert_eq!(denied.code(), tonic::Code::PermissionDenied);
    assert_eq!(invalid_fields(download(&engine, &["x"], &input.id).await), ["RecordIds"]);

    // The files of a deleted project are gone.
    let request = user.call(DeleteProjectRequest { id: images.id });
    user.projects().delete_project(request).await.unwrap();
    let missing = download(&engine, &both, &image.id).await.unwrap_err();
    assert_eq!(missing.code(), tonic::Code::NotFound);
}
