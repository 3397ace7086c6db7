//! References of subjects, environments and test plans to files.

use assay_proto::catalog::*;
use tonic::Response;
use uuid::Uuid;

use crate::{
    user::{User, web_page},
    world::{Answer, World, fault, invalid_fields},
};

async fn delete(user: &User, file: &StoredFile) -> Answer<()> {
    let request = DeleteFileRequest { project_id: file.project_id.clone(), id: file.id.clone() };
    user.files().delete_file(user.call(request)).await.map(Response::into_inner)
}

/// Software that is installed, with these files.
fn software(files: [Option<&str>; 4]) -> SubjectInput {
    let [software, installation, instruction, framework] = files.map(|id| id.map(str::to_owned));
    let mut subject = SubjectInput {
        software_file_id: software,
        software_file_name: Some("wrong.zip".into()),
        software_file_size: 1,
        installation_file_id: installation,
        instruction_file_id: instruction,
        framework_file_id: framework,
        ..web_page()
    };
    subject.set_subject_type(SubjectType::RequiresInstallation);
    subject
}

fn lab(image: Option<&str>, project: &str) -> EnvironmentInput {
    EnvironmentInput {
        name: "Lab".into(),
        image_file_id: image.map(str::to_owned),
        file_project_id: project.to_owned(),
        ..EnvironmentInput::default()
    }
}

#[tokio::test]
async fn names_and_sizes_of_a_subject_follow_from_its_files() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let msi = user.upload(&project, "shop.msi", b"MSI").await.unwrap();
    let pdf = user.upload(&project, "install.pdf", b"%PDF").await.unwrap();
    let files = [Some(&*msi.id), Some("elsewhere"), Some(&*pdf.id), Some(&*msi.id)];
    let subject = user.create_subject(&project, software(files)).await.unwrap();
    assert_eq!(subject.software_file_name.as_deref(), Some("shop.msi"));
    assert_eq!(subject.software_file_size, 3);
    assert_eq!(subject.installation_file_name, None);
    assert_eq!(subject.instruction_file_name.as_deref(), Some("install.pdf"));

    let subject = user.get_subject(&project, &subject.id).await;
    let renamed = SubjectInput {
        software_file_name: Some("wrong.zip".into()),
        software_file_size: 7,
        ..SubjectInput::default()
    };
    let fields = ["SoftwareFileName", "SoftwareFileSize"];
    let subject = user.update_subject(&subject, renamed, &fields).await.unwrap();
    assert_eq!(subject.software_file_name.as_deref(), Some("shop.msi"));
    assert_eq!(subject.software_file_size, 3);
    let page =
        SubjectInput { subject_type: SubjectType::Webpage.into(), ..SubjectInput::default() };
    let fields = ["SubjectType", "SoftwareFileId", "FrameworkFileId"];
    let subject = user.update_subject(&subject, page, &fields).await.unwrap();
    assert_eq!((subject.software_file_name, subject.software_file_size), (None, 0));
    delete(&user, &msi).await.unwrap();
    assert_eq!(fault(delete(&user, &pdf).await), "file_in_use");
}

#[tokio::test]
async fn only_files_of_the_project_can_be_named_by_id() {
    let world = World::start().await;
    let (user, stranger) = (world.user().await, world.user().await);
    let (project, other, foreign) =
        (user.project().await, user.project().await, stranger.project().await);
    let case = user.case(&project, "a").await;
    let elsewhere = user.upload(&other, "a", b"a").await.unwrap().id;
    let foreign = stranger.upload(&foreign, "a", b"a").await.unwrap();
    let unknown = Uuid::now_v7().to_string();
    for id in [&elsewhere, &foreign.id, &unknown, &elsewhere.to_uppercase()] {
        let files = [Some(id.as_str()), Some(id), Some(id), Some(id)];
        assert_eq!(
            invalid_fields(user.create_subject(&project, software(files)).await),
            ["FrameworkFileId", "InstallationFileId", "InstructionFileId", "SoftwareFileId"]
        );
        let environment = user.create_environment(&project, lab(Some(id), "")).await;
        assert_eq!(invalid_fields(environment), ["ImageFileId"]);
        let plan = TestPlanInput {
            input_file_id: Some(id.clone()),
            automated_test_container_id: Some(id.clone()),
            ..TestPlanInput::default()
        };
        assert_eq!(
            invalid_fields(user.create_plan(&case, plan).await),
            ["AutomatedTestContainerId", "InputFileId"]
        );
    }
    let environment = lab(Some(&foreign.id), &foreign.project_id);
    let environment = user.create_environment(&project, environment).await;
    assert_eq!(invalid_fields(environment), ["FileProjectId"]);
    // A project of another system has files that are not here.
    user.create_environment(&project, lab(Some(&unknown), "browsers")).await.unwrap();
    let plan = TestPlanInput { input_file_id: Some("file 7".into()), ..TestPlanInput::default() };
    user.create_plan(&case, plan).await.unwrap();
}

#[tokio::test]
async fn the_container_of_a_test_is_an_archive_or_the_reference_of_an_image() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let case = user.case(&project, "a").await;
    let archive = user.upload(&project, "shop.tar", b"image").await.unwrap();
    let with = |container: &str| TestPlanInput {
        automated_test_container_id: Some(container.to_owned()),
        ..TestPlanInput::default()
    };
    let mut plan = user.create_plan(&case, with(&archive.id)).await.unwrap();
    let refused = delete(&user, &archive).await;
    let message = refused.as_ref().unwrap_err().message().to_owned();
    assert_eq!(fault(refused), "file_in_use");
    assert!(message.contains("AutomatedTestContainerId of the test plan"), "{message}");

    let digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    let fields = ["AutomatedTestContainerId"];
    for wrong in ["shop@latest", &format!("shop@sha256:{}", &digest[1..])] {
        let refused = user.update_plan(&case, &plan, with(wrong), &fields).await;
        assert_eq!(invalid_fields(refused), fields, "{wrong}");
    }
    for container in [format!("registry.example.org/shop@sha256:{digest}"), "shop:2.4".to_owned()] {
        user.create_plan(&case, with(&container)).await.unwrap();
        plan = user.update_plan(&case, &plan, with(&container), &fields).await.unwrap();
        assert_eq!(plan.automated_test_container_id, Some(container));
    }
    delete(&user, &archive).await.unwrap();
}

#[tokio::test]
async fn an_image_may_be_a_file_of_another_project() {
    let world = World::start().await;
    let user = world.user().await;
    let (project, images) = (user.project().await, user.project().await);
    let image = user.upload(&images, "linux.img", b"image").await.unwrap();
    let environment = lab(Some(&image.id), &images.id);
    let environment = user.create_environment(&project, environment).await.unwrap();
    assert_eq!(environment.image_file_size, 5);
    assert_eq!(fault(delete(&user, &image).await), "file_in_use");
    let current = user.get_environment(&project, &environment.id).await;
    let moved = EnvironmentInput { file_project_id: project.id.clone(), ..Default::default() };
    let moved = user.update_environment(&current, moved, &["FileProjectId"]).await;
    assert_eq!(invalid_fields(moved), ["ImageFileId"], "the other project has no such file");

    // An environment outlives the project of its image.
    let request = user.call(DeleteProjectRequest { id: images.id.clone() });
    user.projects().delete_project(request).await.unwrap();
    assay_catalog::purge(&world.db).await.unwrap();
    let renamed = EnvironmentInput { name: "Old lab".into(), ..Default::default() };
    let renamed = user.update_environment(&current, renamed, &["Name"]).await.unwrap();
    assert_eq!(renamed.image_file_id.as_deref(), Some(&*image.id));
    let references = "select count(*) from file_reference";
    let references: i64 = sqlx::query_scalar(references).fetch_one(&world.db).await.unwrap();
    assert_eq!(references, 0);
}

#[tokio::test]
async fn a_file_is_deleted_only_after_the_last_record_that_refers_to_it() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let case = user.case(&project, "a").await;
    let file = user.upload(&project, "a", b"a").await.unwrap();
    let plan = TestPlanInput {
        input_file_id: Some(file.id.clone()),
        supporting_files_id: Some(file.id.clone()),
        ..TestPlanInput::default()
    };
    let plan = user.create_plan(&case, plan).await.unwrap();
    let refused = delete(&user, &file).await;
    let message = refused.as_ref().unwrap_err().message().to_owned();
    assert_eq!(fault(refused), "file_in_use");
    let named = format!("InputFileId of the test plan {} and 1 other fields", plan.id);
    assert!(message.contains(&named), "{message}");

    let transfer = TransferTestPlanRequest {
        project_id: project.id.clone(),
        test_case_id: case.id.clone(),
        id: plan.id.clone(),
        new_type: "Stability".into(),
    };
    user.plans().transfer_test_plan(user.call(transfer)).await.unwrap();
    let cleared = ["InputFileId", "SupportingFilesId"];
    user.update_plan(&case, &plan, TestPlanInput::default(), &cleared).await.unwrap();
    assert_eq!(fault(delete(&user, &file).await), "file_in_use", "the copy refers to it");
    let request = DeleteTestCaseRequest { project_id: project.id.clone(), id: case.id.clone() };
    user.cases().delete_test_case(user.call(request)).await.unwrap();
    delete(&user, &file).await.unwrap();

    let image = user.upload(&project, "b", b"b").await.unwrap();
    let environment = user.create_environment(&project, lab(Some(&image.id), "")).await.unwrap();
    let files = [Some(&*image.id), None, Some("manual"), None];
    let subject = user.create_subject(&project, software(files)).await.unwrap();
    let request = DeleteEnvironmentRequest { project_id: project.id.clone(), id: environment.id };
    user.environments().delete_environment(user.call(request)).await.unwrap();
    assert_eq!(fault(delete(&user, &image).await), "file_in_use");
    let request = DeleteSubjectRequest { project_id: project.id.clone(), id: subject.id };
    user.subjects().delete_subject(user.call(request)).await.unwrap();
    delete(&user, &image).await.unwrap();
}

#[tokio::test]
async fn a_text_that_was_stored_before_files_existed_stays_until_it_changes() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let old = Uuid::now_v7().to_string();
    let subject = user.create_subject(&project, software([Some("x"), None, Some("y"), None])).await;
    let subject = user.get_subject(&project, &subject.unwrap().id).await;
    let age = "update subject set software_file_id = $1 where id = $2";
    sqlx::query(age)
        .bind(&old)
        .bind(subject.id.parse::<Uuid>().unwrap())
        .execute(&world.db)
        .await
        .unwrap();
    let renamed = SubjectInput { name: "Shop 2".into(), ..SubjectInput::default() };
    let renamed = user.update_subject(&subject, renamed, &["Name"]).await.unwrap();
    assert_eq!(renamed.software_file_id.as_deref(), Some(&*old));
    let changed = SubjectInput {
        software_file_id: Some(Uuid::now_v7().to_string()),
        ..SubjectInput::default()
    };
    let changed = user.update_subject(&renamed, changed, &["SoftwareFileId"]).await;
    assert_eq!(invalid_fields(changed), ["SoftwareFileId"]);
}
