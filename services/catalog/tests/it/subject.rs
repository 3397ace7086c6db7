//! Subjects.

use assay_proto::catalog::*;

use crate::{
    user::web_page,
    world::{World, fault, invalid_fields},
};

#[tokio::test]
async fn a_subject_is_read_as_it_was_created() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let base = user.subject(&project).await;
    let mut input = SubjectInput {
        identifier: "2.0".into(),
        name: "App".into(),
        needs_public_ip: true,
        software_file_id: Some("file-1".into()),
        software_file_name: Some("app.zip".into()),
        software_file_size: 1 << 40,
        instruction_file_id: Some("file-2".into()),
        modification_allowed: true,
        base_subject_id: Some(base.id.clone()),
        archived: true,
        ..SubjectInput::default()
    };
    input.set_subject_type(SubjectType::RequiresInstallation);
    let entry = user.create_subject(&project, input).await.unwrap();

    let subject = user.get_subject(&project, &entry.id).await;
    assert_eq!(subject.software_file_size, 1 << 40);
    assert_eq!(subject.base_subject_id, Some(base.id));
    assert_eq!(subject.base_subject_identifier.as_deref(), Some("1.0"));
    assert_eq!(subject.subject_type(), SubjectType::RequiresInstallation);
    assert!(subject.needs_public_ip && subject.modification_allowed && !subject.archived);
    assert_eq!((subject.pass_rate, entry.pass_rate), (0.0, 0.0));
    let events: Vec<_> =
        world.events().await.into_iter().map(|(noun, action, _)| noun + &action).collect();
    assert_eq!(events, ["projectcreated", "subjectcreated", "subjectcreated"]);
}

#[tokio::test]
async fn required_fields_of_a_subject_depend_on_its_type() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let no_uri = SubjectInput { uri: String::new(), ..web_page() };
    assert_eq!(invalid_fields(user.create_subject(&project, no_uri).await), ["Uri"]);
    let mut no_files = web_page();
    no_files.set_subject_type(SubjectType::RequiresInstallation);
    assert_eq!(
        invalid_fields(user.create_subject(&project, no_files).await),
        ["InstructionFileId", "SoftwareFileId"]
    );
    let nothing = SubjectInput { software_file_size: -1, ..SubjectInput::default() };
    assert_eq!(
        invalid_fields(user.create_subject(&project, nothing).await),
        ["Identifier", "Name", "SoftwareFileSize", "SubjectType"]
    );
    let script = SubjectInput { uri: "javascript:alert(1)".into(), ..web_page() };
    assert_eq!(invalid_fields(user.create_subject(&project, script).await), ["Uri"]);
}

#[tokio::test]
async fn an_update_is_validated_like_a_creation() {
    let world = World::start().await;
    let user = world.user().await;
    let project = user.project().await;
    let subject = user.subject(&project).await;
    let subject = user.get_subject(&project, &subject.id).await;
    let mut installed = SubjectInput::default();
    installed.set_subject_type(SubjectType::RequiresInstallation);
    assert_eq!(
        invalid_fields(user.update_subject(&subject, installed, &["SubjectType"]).await),
        ["InstructionFileId", "SoftwareFileId"]
    );
    let itself = SubjectInput { base_subject_id: Some(subject.id.clone()), ..web_page() };
    assert_eq!(
        invalid_fields(user.update_subject(&subject, itself, &["BaseSubjectId"]).await),
        ["BaseSubjectId"]
    );
    let changes = SubjectInput { identifier: "1.1".into(), archived: true, ..web_page() };
    let updated =
        user.update_subject(&subject, changes, &["Identifier", "Archived"]).await.unwrap();
    assert_eq!((updated.identifier.as_str(), updated.archived), ("1.1", true));
    assert_eq!(updated.uri, subject.uri);
    assert_eq!(user.get_subject(&project, &subject.id).await, updated);
    assert_eq!(
        fault(user.update_subject(&subject, web_page(), &["Uri"]).await),
        "stale_data_version"
    );
}
