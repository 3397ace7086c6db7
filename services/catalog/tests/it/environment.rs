//! Environments.

use assay_proto::catalog::*;

use crate::world::{World, fault, invalid_fields};

#[tokio::test]
async fn an_environment_is_read_as_it_was_created() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let subject = user.subject(&project).await;
    let input = EnvironmentInput {
        name: "Lab".into(),
        image_file_id: Some("image-1".into()),
        contained_subject: Some(subject.id.clone()),
        image_file_size: 5_000_000_000,
        target_group: "linux".into(),
        username: "tester".into(),
        ..EnvironmentInput::default()
    };
    let entry = user.create_environment(&project, input).await.unwrap();
    let environment = user.get_environment(&project, &entry.id).await;

    assert_eq!(environment.contained_subject, Some(subject.id));
    assert_eq!(environment.image_file_size, 5_000_000_000);
    assert_eq!(environment.file_project_id, project.id);
    assert_eq!(environment.password, "");
    assert_eq!(environment.username, "tester");
    let (noun, action, _) = world.events().await.pop().unwrap();
    assert_eq!((noun.as_str(), action.as_str()), ("environment", "created"));
}

#[tokio::test]
async fn an_update_changes_only_the_named_fields() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let environment = user.environment(&project).await;
    let environment = user.get_environment(&project, &environment.id).await;
    let changes = EnvironmentInput {
        target_group: "windows".into(),
        archived: true,
        ..EnvironmentInput::default()
    };
    let fields = ["TargetGroup", "Archived"];
    let updated = user.update_environment(&environment, changes, &fields).await.unwrap();
    assert_eq!(updated.name, "Lab");
    assert_eq!((updated.target_group.as_str(), updated.archived), ("windows", true));
    let (_, action, _) = world.events().await.pop().unwrap();
    assert_eq!(action, "archived");
    let late = user.update_environment(&environment, EnvironmentInput::default(), &[]).await;
    assert_eq!(fault(late), "stale_data_version");
    let wrong = EnvironmentInput { image_file_size: -1, ..EnvironmentInput::default() };
    let fields = ["Name", "ImageFileSize"];
    assert_eq!(
        invalid_fields(user.update_environment(&updated, wrong, &fields).await),
        ["ImageFileSize", "Name"]
    );
}

#[tokio::test]
async fn an_empty_subject_reference_is_stored_as_null() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let environment = EnvironmentInput {
        name: "Lab".into(),
        contained_subject: Some(String::new()),
        ..EnvironmentInput::default()
    };
    let environment = user.create_environment(&project, environment).await.unwrap();
    assert_eq!(environment.contained_subject, None);
    let subject = SubjectInput { base_subject_id: Some(String::new()), ..crate::user::web_page() };
    assert_eq!(user.create_subject(&project, subject).await.unwrap().base_subject_id, None);
}

#[tokio::test]
async fn a_target_group_is_one_of_the_appliances_of_the_customer() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let of = |group: &str| EnvironmentInput {
        name: "Lab".into(),
        target_group: group.into(),
        ..EnvironmentInput::default()
    };
    let old = user.create_environment(&project, of("mac")).await.unwrap();
    let old = user.get_environment(&project, &old.id).await;
    for customer in [user.identity.customer, assay_proto::CustomerId::new()] {
        sqlx::query("insert into appliances values ($1, '{linux,windows}', 1)")
            .bind(customer)
            .execute(&world.db)
            .await
            .unwrap();
    }

    user.create_environment(&project, of("linux")).await.unwrap();
    user.create_environment(&project, of("")).await.unwrap();
    let refused = user.create_environment(&project, of("mac")).await;
    assert_eq!(invalid_fields(refused), ["TargetGroup"]);
    let renamed = EnvironmentInput { name: "Old lab".into(), ..of("mac") };
    let fields = ["Name", "TargetGroup"];
    let old = user.update_environment(&old, renamed, &fields).await.unwrap();
    let refused = user.update_environment(&old, of("bsd"), &["TargetGroup"]).await;
    assert_eq!(invalid_fields(refused), ["TargetGroup"]);
    let stranger = world.user().await;
    let project = stranger.project().await;
    stranger.create_environment(&project, of("mac")).await.unwrap();
}
